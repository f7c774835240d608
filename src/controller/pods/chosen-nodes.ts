/**
 * Whether a node takes a pod: by its readiness and taints, and by the labels that the pod chooses. Node
 * labels are not kept in memory: few pods need this check, and few of those choose.
 */
import type { KubeClient } from '../../kube/api/client.ts';
import type { Node, NodeSelectorRequirement, Taint, Toleration } from '../../kube/api/objects.ts';
import { PageSize, objectsOf } from '../../kube/api/pages.ts';
import { paths } from '../../kube/api/paths.ts';
import { own } from '../../names/values.ts';
import { isLabelKey, isLabelValue } from '../../names/labels.ts';
import { covers } from '../../placement/pod/expressions.ts';
import { isEmptyTerm } from '../../placement/pod/terms.ts';
import type { CachedNode, NodeChoice } from '../state/cached.ts';

/** Set by the node controller where `spec.unschedulable` is. */
const cordonTaint = 'node.kubernetes.io/unschedulable';

export function tolerates(tolerations: readonly Toleration[], { key, value = '', effect }: Taint): boolean {
  const wanted = { key, operator: 'Equal', value, effect };
  return tolerations.some((toleration) => covers(toleration, wanted));
}

/** Whether a node takes new pods, apart from taints that pods can tolerate. */
export function takesPods(node: CachedNode): boolean {
  return node.ready && !node.taints.some(({ key }) => key === cordonTaint);
}

export function letsIn(node: Pick<CachedNode, 'taints'>, tolerations: readonly Toleration[]): boolean {
  return node.taints.every((taint) => taint.effect === 'PreferNoSchedule' || tolerates(tolerations, taint));
}

/**
 * Label selectors; a node has to match one of them. A term with an expression that Kubernetes cannot evaluate
 * matches no node, so it has none (component-helpers nodeaffinity: `nodeSelectorRequirementsAsSelector`).
 * @param groups further expressions; a node has to match those of one group
 */
export function selectorsOf(
  { nodeSelector, terms }: NodeChoice,
  groups: readonly (readonly NodeSelectorRequirement[])[] = [[]],
): readonly string[] {
  const chosen = Object.entries(nodeSelector).map(([key, value]) => `${key}=${value}`);
  const chosenTerms = terms?.filter((term) => !isEmptyTerm(term)) ?? [{}];
  return chosenTerms.flatMap(({ matchExpressions = [] }) =>
    groups.flatMap((group) => {
      const parts = [...matchExpressions, ...group].map(selectorOf);
      return parts.includes(undefined) ? [] : [[...chosen, ...parts].join(',')];
    }),
  );
}

/** One expression as a label selector (apimachinery pkg/labels/selector.go `Parse`); `undefined`: invalid. */
function selectorOf({ key, operator, values = [] }: NodeSelectorRequirement): string | undefined {
  if (!isLabelKey(key) || !values.every(isLabelValue)) return undefined;
  const [value = ''] = values;
  const isBound = values.length === 1 && /^-?\d+$/.test(value);
  const list = values.join(',');
  const forms: Readonly<Record<string, string | undefined>> = {
    In: `${key} in (${list})`,
    NotIn: `${key} notin (${list})`,
    Exists: key,
    DoesNotExist: `!${key}`,
    Gt: isBound ? `${key}>${value}` : undefined,
    Lt: isBound ? `${key}<${value}` : undefined,
  };
  return own(forms, operator);
}

/** Nodes are large, up to 50 KB each, and the first one usually does. */
const firstPage = 20;

/** Each costs a request. Pods have a few; the API server accepts tens of thousands. */
const maxSelectors = 100;

/**
 * Looks for a node that the pod chooses.
 * @param nodes names of those that are possible
 * @param selectors label selectors; one of the first hundred has to fit
 */
export async function hasChosenNode(
  nodes: ReadonlySet<string>,
  selectors: readonly string[],
  { client, signal }: { readonly client: KubeClient; readonly signal: AbortSignal },
): Promise<boolean> {
  for (const labelSelector of selectors.slice(0, maxSelectors)) {
    const query = { labelSelector };
    const size = new PageSize(firstPage);
    for await (const { metadata } of objectsOf<Node>(client, paths.nodes(), { signal, query, size }))
      if (nodes.has(metadata?.name ?? '')) return true;
  }
  return false;
}
