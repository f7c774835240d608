/** The distinct classes of a cluster's nodes. */
import { byName } from '../names/values.ts';
import { isNonEmptyLabelValue } from '../names/labels.ts';
import type { LabeledLevels } from './amd64-level.ts';
import { withReport, type ClassifiedNode } from './classify.ts';
import type { NodeClass } from './node-class.ts';
import type { NodeReport } from './node-report.ts';

/** Nodes of one class, with the same labels for levels. */
export interface NodesOfClass {
  readonly class: NodeClass;
  readonly levels: LabeledLevels;
  readonly nodes: number;
  /** Hostnames of the nodes that have one, sorted. */
  readonly hostnames: readonly string[];
}

/** Keys: architectures with at least one node. The same object until a change: results are remembered by it. */
export type NodeClasses = ReadonlyMap<string, readonly NodesOfClass[]>;

export function groupsOf(
  classes: NodeClasses | undefined,
  architecture: string,
  os: string,
): readonly NodesOfClass[] {
  return classes?.get(architecture)?.filter((group) => group.class.os === os) ?? [];
}

/** A cluster without nodes: an image runs on the architectures that it names. */
export const noNodes: NodeClasses = new Map();

/**
 * Clusters have a few: machine types times versions of the runtime during an upgrade. With more, only
 * operating systems, architectures and labels for levels count.
 */
const maxClasses = 128;

export function groupByClass(
  nodes: Iterable<ClassifiedNode>,
  reports: ReadonlyMap<string, NodeReport>,
): NodeClasses {
  const all = [...nodes].map((node) => ({ ...node, class: withReport(node.class, reports.get(node.name)) }));
  const groups = grouped(all);
  const few = groups.length <= maxClasses ? groups : grouped(all.map(withoutDetails));
  return Map.groupBy(few, ({ class: { architecture } }) => architecture);
}

function withoutDetails(node: ClassifiedNode): ClassifiedNode {
  const { os, architecture } = node.class;
  return { ...node, class: { os, architecture } };
}

function grouped(nodes: readonly ClassifiedNode[]): readonly NodesOfClass[] {
  const byKey = Map.groupBy(nodes, ({ class: own, levels }) => JSON.stringify([own, levels]));
  const sorted = [...byKey].sort(([a], [b]) => byName(a, b));
  return sorted.flatMap(([, [first, ...others]]) => {
    if (first === undefined) return [];
    const all = [first, ...others];
    const hostnames = all.flatMap(({ hostname }) =>
      hostname !== undefined && isNonEmptyLabelValue(hostname) ? [hostname] : [],
    );
    const { class: own, levels } = first;
    return [{ class: own, levels, nodes: all.length, hostnames: hostnames.sort(byName) }];
  });
}
