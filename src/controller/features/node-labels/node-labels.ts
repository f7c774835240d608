/**
 * Labels of nodes, from two features.
 *
 * - Agents on chosen nodes (`agentNodes`; default: all nodes, no labels): the agents' DaemonSet selects a label.
 *   Each node pool keeps a number of labeled nodes; nodes that leave or fail are replaced. A surplus label is
 *   removed after a minute: by then, the webhooks have found the agent of the new node. All other state is in
 *   the cluster, so the next leader continues anywhere.
 * - The CPU level that agents report of amd64 nodes (`amd64LevelLabels`; default: off): pods can require it. A
 *   node without a report keeps its label. If the setting is turned off, the labels go.
 */
import { changeEach, labelPatch } from '../../../kube/api/change.ts';
import { ignoring, type KubeError } from '../../../kube/api/errors.ts';
import { paths } from '../../../kube/api/paths.ts';
import { keys } from '../../../names/keys.ts';
import { labeledLevels } from '../../../nodes/amd64-level.ts';
import type { Configuration } from '../../../policy/configuration/configuration.ts';
import { gauge } from '../../../telemetry/metrics.ts';
import type { CachedNode } from '../../state/cached.ts';
import type { Feature, LeaderContext } from '../../lead/feature.ts';

const labeledNodes = gauge('archwright_agent_nodes', 'Nodes labeled for agentNodes; 0 if it is all.');

const uncoveredPools = gauge(
  'archwright_agent_pools_uncovered',
  'Node pools without a healthy node for an agent.',
);

/** Agents start and report within a minute; a node that is not ready for a while causes no event. */
const resyncMs = 15_000;
const surplusMs = 60_000;
/** Value of the node label that the DaemonSet of the agents selects. */
const agentLabelValue = 'true';

export const agentNodes: Feature = {
  name: 'agent-nodes',
  metrics: [labeledNodes, uncoveredPools],
  resyncMs,
  inRounds: true,
  // Agents of a DaemonSet that selects the label end. A value of a person's own stays.
  leftovers: {
    nodes: {
      step: 'agent nodes',
      what: 'label',
      labelSelector: `${keys.agentNode}=${agentLabelValue}`,
      removal:
        () =>
        ({ metadata }) =>
          metadata?.labels?.[keys.agentNode] === agentLabelValue
            ? labelPatch(keys.agentNode, null)
            : undefined,
    },
  },
  // Not before the caches are complete: a part of the nodes would look like pools with missing nodes.
  start: (leader) => ({ keys: () => ['all'], reconcile: createAgentNodes(leader) }),
};

/** @returns labels the nodes; throws KubeError if the rest has to be tried again */
export function createAgentNodes(leader: LeaderContext): () => Promise<void> {
  const { caches, clock, configuration, serverNow, metrics } = leader;
  const labeled = metrics.gauge(labeledNodes);
  const uncoveredNow = metrics.gauge(uncoveredPools);
  /** When a label became surplus, by its name; monotonic time. */
  let surplusSince: ReadonlyMap<string, number> = new Map();
  return async () => {
    const { agentNodes: wanted } = configuration();
    const { add, surplus, uncovered } = planAgentNodes(caches.nodes.values(), wanted, serverNow());
    labeled.set(wanted === 'all' ? 0 : [...caches.nodes.values()].filter(isLabeled).length);
    uncoveredNow.set(uncovered);
    const now = clock.monotonic();
    surplusSince = new Map(surplus.map(({ name }) => [name, surplusSince.get(name) ?? now]));
    const isDue = ({ name, pool }: CachedNode): boolean =>
      // A successor that is refused its label runs no agent.
      !add.some((successor) => successor.pool === pool) && now - (surplusSince.get(name) ?? now) >= surplusMs;
    const labeling = await label(leader, add, keys.agentNode, () => agentLabelValue);
    // Agents on all nodes need no successor.
    const due = wanted === 'all' ? surplus : surplus.filter(isDue);
    const removal = await label(leader, due, keys.agentNode, () => null);
    const [first] = [...labeling, ...removal];
    if (first) throw first;
  };
}

/** A restarting node is back sooner. Pods leave a failed node after 5 min (`DefaultTolerationSeconds`). */
const unreadyMs = 5 * 60_000;

/** Autoscalers set them on nodes that they are about to remove: Karpenter, and the cluster autoscaler. */
const leavingTaints: ReadonlySet<string> = new Set([
  'karpenter.sh/disrupted',
  'ToBeDeletedByClusterAutoscaler',
]);

/**
 * @param now by the API server's clock
 * @returns nodes to label, labeled nodes that their pool does not need, the number of pools without a healthy node
 */
function planAgentNodes(nodes: Iterable<CachedNode>, wanted: Configuration['agentNodes'], now: number) {
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
  return node.labels[keys.agentNode] === undefined && node.ready && isHealthy(node, now) ? 1 : undefined;
}

function isHealthy(node: CachedNode, now: number): boolean {
  if (node.unschedulable || node.deleting || node.taints.some(({ key }) => leavingTaints.has(key)))
    return false;
  return node.ready || now - Math.max(node.readyChangedAt, node.createdAt) < unreadyMs;
}

function isLabeled(node: CachedNode): boolean {
  return node.labels[keys.agentNode] === agentLabelValue;
}

/** The oldest first: its image facts are the most, and it is the least likely to be a test. */
function inOrder(a: CachedNode, b: CachedNode): number {
  return a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1);
}

export const amd64Levels: Feature = {
  name: 'amd64-levels',
  resyncMs,
  inRounds: true,
  leftovers: {
    nodes: {
      step: 'CPU levels',
      what: 'CPU level',
      labelSelector: keys.amd64Level,
      removal:
        () =>
        ({ metadata }) =>
          labeledLevels(metadata?.labels ?? {}).own === undefined
            ? undefined
            : labelPatch(keys.amd64Level, null),
    },
  },
  start: (leader) => ({ keys: () => ['all'], reconcile: () => labelLevels(leader) }),
};

/** @throws KubeError if the rest has to be tried again */
export async function labelLevels(leader: LeaderContext): Promise<void> {
  const { caches, fleet, configuration } = leader;
  const isOn = configuration().amd64LevelLabels;
  const reports = fleet?.nodeReports();
  const wantedOf = ({ name, architecture, classified }: CachedNode) => {
    if (!isOn) return undefined;
    const reported = architecture === 'amd64' ? reports?.get(name)?.amd64Level : undefined;
    return reported ?? classified?.levels.own;
  };
  const changed = [...caches.nodes.values()].filter(
    (node) => wantedOf(node) !== node.classified?.levels.own && !node.deleting,
  );
  const [first] = await label(leader, changed, keys.amd64Level, (node) => {
    const level = wantedOf(node);
    return level === undefined ? null : `v${level}`;
  });
  if (first) throw first;
}

/**
 * @param valueOf the label of a node; `null` removes it
 * @returns the errors of nodes that were refused
 * @throws KubeError at once if it is temporary
 */
async function label(
  { client, signal, log }: LeaderContext,
  nodes: readonly CachedNode[],
  key: string,
  valueOf: (node: CachedNode) => string | null,
): Promise<readonly KubeError[]> {
  const change = async (node: CachedNode): Promise<boolean> => {
    const [{ name, pool }, value] = [node, valueOf(node)];
    await ignoring('not-found', client.patch(paths.nodes(name), labelPatch(key, value), { signal }));
    log.info({ node: name, pool, label: key, value }, 'the label of a node was changed');
    return true;
  };
  return (await changeEach(nodes, change, signal)).refused;
}
