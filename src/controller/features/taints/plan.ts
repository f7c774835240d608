/** Which nodes need a taint, and which must lose one, computed from the caches. Pure. */
import type { Taint } from '../../../kube/api/objects.ts';
import { hasEnded, type CachedNode, type RunningPod } from '../../state/cached.ts';
import { hasRightTaint, ownTaints, taintFor, type TaintSettings } from './own-taint.ts';

export interface ArchitecturePlan {
  readonly architecture: string;
  readonly taint: Taint;
  /** All of its nodes that should have the taint, by name. */
  readonly nodes: ReadonlyMap<string, CachedNode>;
  /** Those without it, or with another taint of its key. */
  readonly waiting: readonly CachedNode[];
  /** Whether a node has our taint: then pods have the toleration, and a new node gets the taint at once. */
  readonly established: boolean;
}

/**
 * Nodes that are closed to ordinary pods already (kubeadm; the second key before 1.24). The webhook skips
 * pods that select them, so they would get no toleration.
 */
const controlPlaneTaints: ReadonlySet<string> = new Set([
  'node-role.kubernetes.io/control-plane',
  'node-role.kubernetes.io/master',
]);

interface MutablePlan extends ArchitecturePlan {
  readonly nodes: Map<string, CachedNode>;
  readonly waiting: CachedNode[];
  established: boolean;
}

export function wantedTaint(
  { architecture, taints }: Pick<CachedNode, 'architecture' | 'taints'>,
  { taintArchitectures, taintKey }: TaintSettings,
): Taint | undefined {
  if (architecture === undefined) return undefined;
  if (!taintArchitectures.includes(architecture) && !taintArchitectures.includes('*')) return undefined;
  if (taints.some((taint) => controlPlaneTaints.has(taint.key))) return undefined;
  return taintFor(taintKey, architecture);
}

/**
 * @param keys of our taints
 * @returns each architecture with taints, and the nodes with a taint of ours that is no longer wanted
 */
export function planNodes(
  nodes: Iterable<CachedNode>,
  settings: TaintSettings,
  keys: readonly string[],
): { readonly architectures: readonly ArchitecturePlan[]; readonly clear: readonly CachedNode[] } {
  const found = new Map<string, MutablePlan>();
  const clear: CachedNode[] = [];
  for (const node of nodes) {
    const taint = wantedTaint(node, settings);
    if (taint === undefined) {
      // A new node reports its architecture in a moment.
      if (node.architecture === undefined && settings.taintArchitectures.length > 0) continue;
      if (node.ownTaintKey !== undefined || ownTaints(node, keys).length > 0) clear.push(node);
      continue;
    }
    const architecture = node.architecture ?? '';
    const empty = { architecture, taint, nodes: new Map(), waiting: [], established: false };
    const plan: MutablePlan = found.get(architecture) ?? empty;
    found.set(architecture, plan);
    plan.nodes.set(node.name, node);
    if (!hasRightTaint(node.taints, taint)) plan.waiting.push(node);
    else if (node.ownTaintKey === taint.key) plan.established = true;
    // The wanted taint is not from us; ours has an earlier key.
    else if (node.ownTaintKey !== undefined) clear.push(node);
  }
  return { architectures: [...found.values()], clear };
}

/** Whether nodes get their taint only after the pods on them have the toleration. */
export function waitsForPods({ established, waiting }: ArchitecturePlan): boolean {
  return !established && waiting.length > 0;
}

/** Whether a change of a node matters for taints. Kubelets update their nodes every few minutes. */
export function nodeMatters(before: CachedNode | undefined, now: CachedNode | undefined): boolean {
  if (now === undefined) return false;
  if (before === undefined) return true;
  return (
    before.architecture !== now.architecture ||
    before.ownTaintKey !== now.ownTaintKey ||
    before.taints !== now.taints
  );
}

/** A running pod that does not come from a DaemonSet or from a static manifest. */
export function isOrdinary(pod: RunningPod): boolean {
  if (pod.deleting || hasEnded(pod)) return false;
  if (pod.annotations?.['kubernetes.io/config.mirror'] !== undefined) return false;
  return pod.owner?.kind !== 'DaemonSet';
}
