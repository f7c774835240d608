/**
 * Custom resources: their status says whether they are in force. The leader's log level follows
 * `ClusterPodPlacementConfig/cluster`. Keys: the cluster's object, and each namespace, because its objects can
 * conflict. A status is written by server-side apply, and only if it changes.
 */
import { createYielder } from '../../../async/concurrently.ts';
import type { KubeObject } from '../../../kube/api/objects.ts';
import {
  clusterConfigKind,
  clusterConfigsPath,
  podConfigKind,
  podConfigsPath,
  byPrecedence,
  namedArchitectures,
  unschedulableArchitectures,
  type ArchitecturePreferences,
  readClusterConfig,
  readPodConfig,
  type PodPlacement,
} from '../../../policy/resources/placement.ts';
import type { Feature, LeaderContext, ReconcileResult } from '../../lead/feature.ts';
import { applyStatus } from '../../write/own-objects.ts';
import { conditionsOf, type Finding } from '../../write/conditions.ts';
import { unknownArchitecture } from '../../../names/architecture.ts';
import type { Reading } from '../../../policy/resources/schemas.ts';

const clusterKey = 'cluster';
const configurationKey = 'configuration';

/** The configuration is polled. It only affects the status, so a delay does no harm. */
const configurationIntervalMs = 10_000;

export const customResources: Feature = {
  name: 'custom-resources',
  workers: 2,
  start: (leader, enqueue) => {
    const { caches, configuration } = leader;
    let current = configuration();

    const allKeys = (): readonly string[] => [
      clusterKey,
      ...[...caches.podConfigs.values()].map(({ metadata }) => namespaceKey(metadata?.namespace ?? '')),
    ];
    function reconcileConfiguration(): ReconcileResult {
      if (configuration() !== current) {
        current = configuration();
        for (const key of allKeys()) enqueue(key);
      }
      return { requeueAfterMs: configurationIntervalMs };
    }

    caches.clusterConfigs.onEach(() => enqueue(clusterKey));
    caches.podConfigs.onEach(({ namespace }) => enqueue(namespaceKey(namespace)));
    return {
      keys: () => [...allKeys(), configurationKey],
      reconcile: async (key) => {
        if (key === configurationKey) return reconcileConfiguration();
        return await (key === clusterKey
          ? reconcileCluster(leader)
          : reconcileNamespace(leader, namespaceOf(key)));
      },
    };
  },
};

const namespaceKey = (namespace: string): string => `${podConfigKind}/${namespace}`;
const namespaceOf = (key: string): string => key.slice(key.indexOf('/') + 1);

async function reconcileCluster(leader: LeaderContext): Promise<void> {
  const { log, configuration, caches } = leader;
  log.level = configuration().logLevel;
  for (const object of caches.clusterConfigs.values()) {
    const path = clusterConfigsPath(object.metadata?.name ?? '');
    const findings = validateClusterConfig(object, configuration().schedulableArchitectures);
    await writeStatus(leader, { object, kind: clusterConfigKind, path }, findings);
  }
}

async function reconcileNamespace(leader: LeaderContext, namespace: string): Promise<void> {
  const { caches, configuration, signal } = leader;
  const objects = [...caches.podConfigs.values(namespace)];
  const turn = createYielder(signal);
  const findings = await validatePodConfigs(objects, configuration().schedulableArchitectures, turn);
  for (const object of objects) {
    await turn();
    const { name = '' } = object.metadata ?? {};
    const target = { object, kind: podConfigKind, path: podConfigsPath(namespace, name) };
    await writeStatus(leader, target, findings.get(name) ?? []);
  }
}

function writeStatus(
  leader: LeaderContext,
  target: { readonly object: KubeObject; readonly kind: string; readonly path: string },
  findings: readonly Finding[],
): Promise<void> {
  return applyStatus(leader, target, conditionsOf(target.object, findings, leader.serverNow()));
}

function finding(type: Finding['type'], status: Finding['status'], reason: string, message = ''): Finding {
  return { type, status, reason, message };
}

export function validateClusterConfig(
  object: KubeObject,
  schedulable: readonly string[],
): readonly Finding[] {
  return common(readClusterConfig(object), schedulable);
}

/**
 * Validates the `PodPlacementConfig`s of one namespace, which can conflict.
 * @param turn awaited from time to time, because there can be many thousands
 * @returns by name
 */
export async function validatePodConfigs(
  objects: readonly KubeObject[],
  schedulable: readonly string[],
  turn: () => Promise<void> | undefined,
): Promise<ReadonlyMap<string, readonly Finding[]>> {
  const readings = new Map<string, Reading<PodPlacement>>();
  for (const object of objects) {
    readings.set(object.metadata?.name ?? '', readPodConfig(object));
    await turn();
  }
  const winners = winnersAmong([...readings.values()].flatMap(({ value }) => value ?? []));
  const findings = new Map<string, readonly Finding[]>();
  for (const [name, reading] of readings) {
    const found = conflict(winners.get(name), reading.value?.priority);
    findings.set(name, [...common(reading, schedulable), found]);
  }
  return findings;
}

/**
 * The first of the same priority with the same selector, or with none, by the name of a later one. Selectors
 * that differ are not compared, although they can select the same pod.
 */
function winnersAmong(placements: readonly PodPlacement[]): ReadonlyMap<string, string> {
  const winners = new Map<string, string>();
  const firsts = new Map<string, string>();
  for (const { name, priority, selector } of placements.toSorted(byPrecedence)) {
    const keyOf = (wanted: unknown): string => JSON.stringify([priority, wanted]);
    const isForAll = selector.length === 0;
    const winner = firsts.get(isForAll ? keyOf('any') : keyOf(selector)) ?? firsts.get(keyOf([]));
    if (winner !== undefined) winners.set(name, winner);
    for (const key of [keyOf('any'), keyOf(selector)]) if (!firsts.has(key)) firsts.set(key, name);
  }
  return winners;
}

function common(
  { value: placement, problems }: Reading<ArchitecturePreferences>,
  schedulable: readonly string[],
): readonly Finding[] {
  if (placement === undefined) {
    const message = `Resource ignored: ${problems.join('; ')}`;
    return [
      finding('Available', 'False', 'Invalid', message),
      finding('Degraded', 'True', 'Invalid', message),
    ];
  }
  const out = unschedulableArchitectures(placement, schedulable);
  const mistakes = namedArchitectures(placement).flatMap(
    (name) => unknownArchitecture(name, schedulable) ?? [],
  );
  const leftOut = `${out.join(', ')}: left out, because schedulableArchitectures has only ${schedulable.join(', ')}`;
  const message = [...(out.length === 0 ? [] : [leftOut]), ...mistakes].join('; ');
  const reason = out.length === 0 ? 'UnknownArchitecture' : 'ArchitecturesLeftOut';
  return [
    finding('Available', 'True', 'InForce'),
    message === '' ? finding('Degraded', 'False', 'AsWritten') : finding('Degraded', 'True', reason, message),
  ];
}

function conflict(winner: string | undefined, priority = 0): Finding {
  if (winner === undefined) return finding('Conflict', 'False', 'None');
  const message = `${winner} has the same priority ${priority}, selects the same pods, and is older: it comes first`;
  return finding('Conflict', 'True', 'SamePriority', message);
}
