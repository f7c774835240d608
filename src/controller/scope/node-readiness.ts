/** Whether a node takes new pods, by its readiness and its taints. */
import type { Taint, Toleration } from '../../kube/api/objects.ts';
import { covers } from '../../placement/pod/expressions.ts';
import type { CachedNode } from '../caches/cached.ts';

/** Set by the node controller where `spec.unschedulable` is. */
const cordonTaint = 'node.kubernetes.io/unschedulable';

/** Whether pods with these tolerations may be scheduled in spite of the taint. */
export function tolerates(tolerations: readonly Toleration[], { key, value = '', effect }: Taint): boolean {
  const wanted = { key, operator: 'Equal', value, effect };
  return tolerations.some((toleration) => covers(toleration, wanted));
}

/** Whether a node takes new pods, apart from taints that pods can tolerate. */
export function takesPods(node: CachedNode): boolean {
  return node.ready && !node.taints.some(({ key }) => key === cordonTaint);
}

/** Whether a node's taints let new pods with these tolerations in. */
export function letsIn(node: Pick<CachedNode, 'taints'>, tolerations: readonly Toleration[]): boolean {
  return node.taints.every((taint) => taint.effect === 'PreferNoSchedule' || tolerates(tolerations, taint));
}
