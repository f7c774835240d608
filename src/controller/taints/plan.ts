/** What is to be done about nodes and pods, from what the caches hold. Pure. */
import type { Configuration } from '../../policy/configuration/configuration.ts';
import type { Taint, Toleration } from '../../kube/api/objects.ts';
import type { CachedNode, RunningPod } from '../caches/caches.ts';
import { hasRightTaint, ownTaints, taintFor } from './own-taint.ts';

export interface TaintSettings {
  /** `*` stands for all. */
  readonly architectures: readonly string[];
  readonly key: string;
}

/** One architecture that is chosen, and has nodes. */
export interface ArchitecturePlan {
  readonly architecture: string;
  readonly taint: Taint;
  /** All of its nodes that are to have the taint, by name. */
  readonly nodes: ReadonlyMap<string, CachedNode>;
  /** Those of them that have it not, or have another one of its key. */
  readonly waiting: readonly CachedNode[];
  /** Whether we gave it to a node already: then the pods had their turn, and a new node gets it at once. */
  readonly established: boolean;
}

export interface NodesPlan {
  readonly architectures: readonly ArchitecturePlan[];
  /** Nodes with a taint of ours that is not wanted any more. */
  readonly clear: readonly CachedNode[];
}

/**
 * The API's words for nodes that are closed to ordinary pods already (kubeadm, and before 1.24). Pods that choose them
 * by their node selector are left alone by the webhook, so nobody would give those a toleration.
 */
const controlPlaneTaints: ReadonlySet<string> = new Set([
  'node-role.kubernetes.io/control-plane',
  'node-role.kubernetes.io/master',
]);

export function taintSettings({ taintArchitectures, taintKey }: Configuration): TaintSettings {
  return { architectures: taintArchitectures, key: taintKey };
}

/** The taint that a node is to have. */
export function wantedTaint(
  { architecture, taints }: Pick<CachedNode, 'architecture' | 'taints'>,
  { architectures, key }: TaintSettings,
): Taint | undefined {
  if (architecture === undefined) return undefined;
  if (!architectures.includes(architecture) && !architectures.includes('*')) return undefined;
  if (taints.some((taint) => controlPlaneTaints.has(taint.key))) return undefined;
  return taintFor(key, architecture);
}

interface Growing {
  readonly taint: Taint;
  readonly nodes: Map<string, CachedNode>;
  readonly waiting: CachedNode[];
  established: boolean;
}

/** Sorts the nodes. */
export function planNodes(nodes: Iterable<CachedNode>, settings: TaintSettings): NodesPlan {
  const found = new Map<string, Growing>();
  const clear: CachedNode[] = [];
  for (const node of nodes) {
    const taint = wantedTaint(node, settings);
    if (taint === undefined) {
      // A node that has not said what it is will say so in a moment.
      if (node.architecture === undefined && settings.architectures.length > 0) continue;
      if (node.ownTaintKey !== undefined || ownTaints(node, [settings.key]).length > 0) clear.push(node);
      continue;
    }
    const architecture = node.architecture ?? '';
    const plan: Growing = found.get(architecture) ?? {
      taint,
      nodes: new Map(),
      waiting: [],
      established: false,
    };
    found.set(architecture, plan);
    plan.nodes.set(node.name, node);
    if (!hasRightTaint(node.taints, taint)) plan.waiting.push(node);
    else if (node.ownTaintKey === taint.key) plan.established = true;
    // Others have set the one that is wanted now; ours is of a key before it.
    else if (node.ownTaintKey !== undefined) clear.push(node);
  }
  const architectures = [...found].map(([architecture, plan]) => ({ architecture, ...plan }));
  return { architectures, clear };
}

/** Whether a change of a node can matter here: kubelets touch their nodes every few minutes. */
export function nodeMatters(before: CachedNode | undefined, now: CachedNode | undefined): boolean {
  if (now === undefined) return false;
  if (before === undefined) return true;
  return (
    before.architecture !== now.architecture ||
    before.ownTaintKey !== now.ownTaintKey ||
    before.taints !== now.taints
  );
}

/** The toleration of a taint of ours. */
export function tolerationOf({ key, value = '', effect }: Taint): Toleration {
  return { key, operator: 'Equal', value, effect };
}

/** A pod that runs and was not placed there by a DaemonSet or by a kubelet's own file. */
export function isOrdinary(pod: RunningPod): boolean {
  if (pod.deleting || pod.phase === 'Succeeded' || pod.phase === 'Failed') return false;
  if (pod.annotations?.['kubernetes.io/config.mirror'] !== undefined) return false;
  return pod.owner?.kind !== 'DaemonSet';
}
