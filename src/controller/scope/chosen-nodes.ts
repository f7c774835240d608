/**
 * Whether a pod that chooses among nodes by their labels would find one. Labels of nodes are not kept in memory: it is asked of
 * few pods, and few of those choose.
 */
import type { KubeClient } from '../../kube/api/client.ts';
import type { Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec } from '../../kube/api/objects.ts';
import { createPageSize } from '../../kube/api/page-size.ts';
import { objectsOf } from '../../kube/api/pages.ts';
import { paths } from '../../kube/api/paths.ts';
import { isEmptyTerm } from '../../placement/pod/terms.ts';

/** How a pod chooses among nodes. */
export interface NodeChoice {
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Of its required affinity, one of which has to fit; `undefined`: it has none. */
  readonly terms: readonly NodeSelectorTerm[] | undefined;
}

/** @returns `undefined` where any node will do */
export function choiceOf({ nodeSelector = {}, affinity }: Partial<PodSpec>): NodeChoice | undefined {
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return terms === undefined && Object.keys(nodeSelector).length === 0 ? undefined : { nodeSelector, terms };
}

/** The label selectors one of which a node has to fit; what no label selector can say lets every node through. */
export function selectorsOf({ nodeSelector, terms }: NodeChoice): readonly string[] {
  const chosen = Object.entries(nodeSelector).map(([key, value]) => `${key}=${value}`);
  const own = terms?.filter((term) => !isEmptyTerm(term)) ?? [{}];
  return own.map(({ matchExpressions = [] }) =>
    [...chosen, ...matchExpressions.flatMap(selectorOf)].join(','),
  );
}

/** @returns none where no label selector can say it */
export function selectorOf({ key, operator, values = [] }: NodeSelectorRequirement): readonly string[] {
  if (operator === 'In') return [`${key} in (${values.join(',')})`];
  if (operator === 'NotIn') return [`${key} notin (${values.join(',')})`];
  if (operator === 'Exists') return [key];
  return operator === 'DoesNotExist' ? [`!${key}`] : [];
}

/** Nodes are large, up to 50 KB each, and the first one usually does. */
const firstPage = 20;

/**
 * Looks for one.
 * @param nodes names of those that are possible
 * @param selectors label selectors; one has to fit
 * @throws KubeError
 */
export async function hasChosenNode(
  nodes: ReadonlySet<string>,
  selectors: readonly string[],
  { client, signal }: { readonly client: KubeClient; readonly signal: AbortSignal },
): Promise<boolean> {
  for (const labelSelector of selectors) {
    const query = { labelSelector };
    const size = createPageSize(firstPage);
    for await (const { metadata } of objectsOf<Node>(client, paths.nodes(), { signal, query, size }))
      if (nodes.has(metadata?.name ?? '')) return true;
  }
  return false;
}
