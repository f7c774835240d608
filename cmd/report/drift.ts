/** `archwright report --drift`: tags that lost or gained architectures, as the controller noted them. */
import type { ClusterObjects } from '../../src/cluster/cluster.ts';
import { readConfigMaps } from '../../src/cluster/config-map.ts';
import {
  createReferenceCache,
  pullReference,
  validReference,
} from '../../src/images/references/reference.ts';
import { describeDrift, parseDrifted, type DriftedTag } from '../../src/images/sources/drifted-tags.ts';
import { timeText } from '../../src/kube/events/event.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { byName } from '../../src/names/values.ts';
import { cell, table } from '../program/table.ts';
import type { ReportedPod } from './pods.ts';
import type { ReportedWorkload } from './workloads.ts';
import { csvLines } from './write.ts';

export interface DriftRow extends DriftedTag {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
}

/** By image as a pod writes it. */
export type DriftOf = (image: string) => DriftedTag | undefined;

/**
 * Reads the controller's notes, once.
 * @param configuration without a `namespace`, all namespaces are searched
 * @returns `undefined` without the permission
 */
export async function readDrift(
  { namespace, driftName }: Pick<Configuration, 'namespace' | 'driftName'>,
  cluster: Pick<ClusterObjects, 'read'>,
  signal: AbortSignal,
): Promise<DriftOf | undefined> {
  const found = await readConfigMaps({ namespace, name: driftName }, cluster, signal);
  if (found === undefined) return undefined;
  const byImage = new Map(found.flatMap(parseDrifted).map((tag) => [tag.image, tag]));
  const parse = createReferenceCache();
  return (image) => {
    if (byImage.size === 0) return undefined;
    const reference = validReference(image, parse);
    return reference && byImage.get(pullReference(reference).text);
  };
}

/** Lost architectures first, then by namespace and workload. */
export function driftRows(
  pods: readonly ReportedPod[],
  workloadOf: (pod: ReportedPod) => ReportedWorkload,
  driftOf: DriftOf,
): readonly DriftRow[] {
  const rows = new Map<string, DriftRow>();
  for (const pod of pods) {
    for (const { image } of pod.made.wanted.uses) {
      const tag = driftOf(image);
      if (tag === undefined) continue;
      const { kind, name } = workloadOf(pod);
      const { namespace } = pod;
      rows.set(JSON.stringify([tag.lost.length === 0, namespace, name, kind, tag.image]), {
        namespace,
        kind,
        name,
        ...tag,
      });
    }
  }
  return [...rows].sort(([a], [b]) => byName(a, b)).map(([, row]) => row);
}

export function writeDrift(rows: readonly DriftRow[], output: 'table' | 'csv' | 'json'): string {
  if (output === 'json')
    return `${JSON.stringify({ drift: rows.map((row) => ({ ...row, since: timeText(row.since) })) }, undefined, 2)}\n`;
  if (output === 'csv') {
    const head = ['namespace', 'kind', 'name', 'image', 'lost', 'gained', 'digest', 'since'];
    const lines = rows.map(({ namespace, kind, name, image, lost, gained, digest, since }) => {
      return [namespace, kind, name, image, lost.join(' '), gained.join(' '), digest, timeText(since)];
    });
    return csvLines([head, ...lines]);
  }
  const lines = rows.map((row) => [
    cell(row.namespace),
    cell(`${row.kind}/${row.name}`),
    cell(row.image),
    cell(describeDrift(row)),
    timeText(row.since),
  ]);
  return table([['NAMESPACE', 'WORKLOAD', 'IMAGE', 'CHANGE', 'SINCE'], ...lines]);
}
