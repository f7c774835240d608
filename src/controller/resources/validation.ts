/** Validates custom resources. Reading and precedence are those of the effective policy. */
import type { KubeObject } from '../../kube/api/objects.ts';
import {
  unschedulableArchitectures,
  type ArchitecturePreferences,
  type PodPlacement,
  type Reading,
} from '../../policy/resources/placement.ts';
import { conflictsAmong, type ConflictsOptions } from '../../policy/resources/conflicts.ts';
import { readClusterConfig, readPodConfig } from '../../policy/resources/read.ts';
import type { Finding } from './conditions.ts';

/**
 * Validates a `ClusterPodPlacementConfig`.
 * @param gatedPods how many pods are gated, if the object is being deleted
 */
export function validateClusterConfig(
  object: KubeObject,
  schedulable: readonly string[],
  gatedPods: number | undefined,
): readonly Finding[] {
  const waits = gatedPods !== undefined && gatedPods > 0;
  const progressing: Finding = {
    type: 'Progressing',
    status: waits ? 'True' : 'False',
    reason: waits ? 'WaitingForGates' : 'Settled',
    message: waits
      ? `it is being deleted; ${gatedPods === 1 ? 'one pod still waits' : `${gatedPods} pods still wait`} behind the scheduling gate, and no more are added`
      : '',
  };
  return [...common(readClusterConfig(object), schedulable), progressing];
}

/**
 * Validates the `PodPlacementConfig`s of one namespace, which can conflict.
 * @param options.turn awaited from time to time, because there can be many thousands
 * @returns by name
 */
export async function validatePodConfigs(
  objects: readonly KubeObject[],
  schedulable: readonly string[],
  options: ConflictsOptions,
): Promise<ReadonlyMap<string, readonly Finding[]>> {
  const readings: { readonly name: string; readonly reading: Reading<PodPlacement> }[] = [];
  for (const object of objects) {
    readings.push({ name: object.metadata?.name ?? '', reading: readPodConfig(object) });
    await options.turn();
  }
  const placements = readings.flatMap(({ reading }) => reading.placement ?? []);
  const { winners, unknown } = await conflictsAmong(placements, options);
  return new Map(
    readings.map(({ name, reading }) => {
      const found = unknown.has(name)
        ? notCompared
        : conflict(winners.get(name), reading.placement?.priority);
      return [name, [...common(reading, schedulable), found]];
    }),
  );
}

const notCompared: Finding = {
  type: 'Conflict',
  status: 'Unknown',
  reason: 'TooMany',
  message:
    'it was not compared with all others: the namespace has too many PodPlacementConfigs of one priority; it is in force all the same',
};

function common(
  { placement, problems }: Reading<ArchitecturePreferences>,
  schedulable: readonly string[],
): readonly Finding[] {
  if (placement === undefined) {
    const message = `it is left out: ${problems.join('; ')}`;
    return [
      { type: 'Available', status: 'False', reason: 'Invalid', message },
      { type: 'Degraded', status: 'True', reason: 'Invalid', message },
    ];
  }
  const out = unschedulableArchitectures(placement, schedulable);
  return [
    { type: 'Available', status: 'True', reason: 'InForce', message: '' },
    out.length === 0
      ? { type: 'Degraded', status: 'False', reason: 'AsWritten', message: '' }
      : {
          type: 'Degraded',
          status: 'True',
          reason: 'ArchitecturesLeftOut',
          message: `${out.join(', ')}: left out, because schedulableArchitectures has only ${schedulable.join(', ')}`,
        },
  ];
}

function conflict(winner: string | undefined, priority: number | undefined): Finding {
  if (winner === undefined) return { type: 'Conflict', status: 'False', reason: 'None', message: '' };
  const message = `${winner} has the same priority ${priority ?? 0}, can select the same pods, and is older: for these it comes first`;
  return { type: 'Conflict', status: 'True', reason: 'SamePriority', message };
}
