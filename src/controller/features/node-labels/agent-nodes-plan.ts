/** Which nodes get the label of the agents, and which lose it. Pure. */
import type { Configuration } from '../../../policy/configuration/configuration.ts';
import { labelPatch } from '../../../kube/api/change.ts';
import type { Patch } from '../../../kube/api/client.ts';
import { keys } from '../../../names/keys.ts';
import type { CachedNode } from '../../state/cached.ts';

/** Value of the node label that the DaemonSet of the agents selects. */
export const agentLabelValue = 'true';

export interface AgentNodesPlan {
  readonly add: readonly CachedNode[];
  /** Labeled nodes that their pool does not need. */
  readonly surplus: readonly CachedNode[];
  /** Pools without a healthy node. */
  readonly uncovered: number;
}

/** A restarting node is back sooner. Pods leave a failed node after 5 min (`DefaultTolerationSeconds`). */
const unreadyMs = 5 * 60_000;

/** Autoscalers set them on nodes that they are about to remove: Karpenter, and the cluster autoscaler. */
const leavingTaints: ReadonlySet<string> = new Set([
  'karpenter.sh/disrupted',
  'ToBeDeletedByClusterAutoscaler',
]);

/** @param now by the API server's clock */
export function planAgentNodes(
  nodes: Iterable<CachedNode>,
  wanted: Configuration['agentNodes'],
  now: number,
): AgentNodesPlan {
  const all = [...nodes].filter(({ os }) => os === 'linux');
  if (wanted === 'all') return { add: [], surplus: all.filter(isLabeled), uncovered: 0 };
  const plans = [...Map.groupBy(all, ({ pool }) => pool).values()].map((pool) => planPool(pool, wanted, now));
  return {
    add: plans.flatMap(({ add }) => add),
    surplus: plans.flatMap(({ surplus }) => surplus),
    uncovered: plans.filter(({ isCovered }) => !isCovered).length,
  };
}

function planPool(pool: readonly CachedNode[], wanted: number, now: number) {
  const candidates = pool
    .map((node) => ({ node, rank: rankOf(node, now) }))
    .filter(({ rank }) => rank !== undefined)
    .sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0) || inOrder(a.node, b.node));
  const chosen = candidates.slice(0, wanted).map(({ node }) => node);
  return {
    add: chosen.filter((node) => !isLabeled(node)),
    surplus: pool.filter((node) => isLabeled(node) && !node.deleting && !chosen.includes(node)),
    isCovered: chosen.some((node) => isHealthy(node, now)),
  };
}

/**
 * Labeled nodes first, so agents stay where they are. An unhealthy labeled node comes last: it keeps its
 * label until its pool has a better one.
 */
function rankOf(node: CachedNode, now: number): number | undefined {
  if (isLabeled(node)) return isHealthy(node, now) ? 0 : 2;
  // A person set any other value, to keep agents away.
  return node.agentLabel === undefined && node.ready && isHealthy(node, now) ? 1 : undefined;
}

function isHealthy(node: CachedNode, now: number): boolean {
  if (node.unschedulable || node.deleting || node.taints.some(({ key }) => leavingTaints.has(key)))
    return false;
  return node.ready || now - Math.max(node.readyChangedAt, node.createdAt) < unreadyMs;
}

export function isLabeled(node: CachedNode): boolean {
  return node.agentLabel === agentLabelValue;
}

/** The oldest first: its image facts are the most, and it is the least likely to be a test. */
function inOrder(a: CachedNode, b: CachedNode): number {
  return a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1);
}

/** Whether a change of a node matters here. Kubelets update their nodes every few minutes. */
export function nodeMatters(before: CachedNode | undefined, now: CachedNode | undefined): boolean {
  if (before === undefined || now === undefined) return true;
  const fields = ['ready', 'unschedulable', 'deleting', 'taints', 'pool', 'agentLabel', 'os'] as const;
  return fields.some((field) => before[field] !== now[field]);
}

export function agentLabelPatch(wanted: boolean): Patch {
  return labelPatch(keys.agentNode, wanted ? agentLabelValue : null);
}
