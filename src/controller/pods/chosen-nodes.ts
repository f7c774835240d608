/** Whether a node takes a pod: by its readiness and taints, and by the labels that the pod chooses. */
import type { NodeSelectorTerm, Taint, Toleration } from '../../kube/api/objects.ts';
import { own } from '../../names/values.ts';
import { covers } from '../../placement/pod/expressions.ts';
import { meets } from '../../names/labels.ts';
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

/** A real choice has some hundred bytes. The API server accepts a megabyte, to be compared with each node. */
const maxChoice = 16 * 1024;

/** @returns whether a node has all labels of the nodeSelector, and matches one of the terms */
export function choosing({ nodeSelector, terms }: NodeChoice) {
  const selected = Object.entries(nodeSelector);
  const possible = terms?.filter((term) => !isEmptyTerm(term));
  const isTooLarge = JSON.stringify([selected, possible]).length > maxChoice;
  return ({ name, labels }: Pick<CachedNode, 'name' | 'labels'>): boolean => {
    if (isTooLarge || !selected.every(([key, value]) => own(labels, key) === value)) return false;
    // The only field is `metadata.name`.
    const matches = ({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm): boolean =>
      matchExpressions.every((each) => meets(each, own(labels, each.key))) &&
      matchFields.every((each) => meets(each, name));
    return possible?.some(matches) ?? true;
  };
}
