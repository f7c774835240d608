/**
 * Agents on chosen nodes (`agentNodes`; default: all nodes, no labels). The agents' DaemonSet selects a
 * label. Each node pool keeps a number of labeled nodes; nodes that leave or fail are replaced.
 *
 * A surplus label is removed after a minute: by then, the webhooks have found the agent of the new node. All
 * other state is in the cluster, so the next leader continues anywhere.
 */
import { changeEach } from '../../../kube/api/change.ts';
import { ignoring } from '../../../kube/api/errors.ts';
import { paths } from '../../../kube/api/paths.ts';
import { gauge, type Gauge } from '../../../telemetry/metrics.ts';
import type { CachedNode } from '../../state/cached.ts';
import type { Feature } from '../../lead/feature.ts';
import type { LeaderContext } from '../../lead/leader-context.ts';
import { agentLabelPatch, isLabeled, nodeMatters, planAgentNodes } from './agent-nodes-plan.ts';

const labeledNodes = gauge('archwright_agent_nodes', 'Nodes labeled for agentNodes; 0 if it is all.');

const uncoveredPools = gauge(
  'archwright_agent_pools_uncovered',
  'Node pools without a healthy node for an agent.',
);

/** Nodes change by events; the configuration, and how long a node is not ready, by the clock. */
const resyncMs = 15_000;
const surplusMs = 60_000;

export const agentNodes: Feature = {
  name: 'agent-nodes',
  metrics: [labeledNodes, uncoveredPools],
  resyncMs,
  inRounds: true,
  // Not before the caches are complete: a part of the nodes would look like pools with missing nodes.
  start: (leading, enqueue) => {
    leading.caches.nodes.onEach(({ previous, object }) => {
      if (nodeMatters(previous, object)) enqueue('nodes');
    });
    const work = new AgentNodes(leading);
    return { keys: () => ['nodes'], reconcile: () => work.reconcile() };
  },
};

export class AgentNodes {
  readonly #leading: LeaderContext;
  readonly #labeled: Gauge;
  readonly #uncovered: Gauge;
  /** By name: since when a label is surplus, by the monotonic clock. */
  #surplusSince: ReadonlyMap<string, number> = new Map();

  constructor(leading: LeaderContext) {
    this.#leading = leading;
    this.#labeled = leading.metrics.gauge(labeledNodes);
    this.#uncovered = leading.metrics.gauge(uncoveredPools);
  }

  /** @throws KubeError if the rest has to be tried again */
  async reconcile(): Promise<void> {
    const { caches, clock, configuration, serverNow } = this.#leading;
    const { agentNodes: wanted } = configuration();
    const { add, surplus, uncovered } = planAgentNodes(caches.nodes.values(), wanted, serverNow());
    this.#labeled.set(wanted === 'all' ? 0 : [...caches.nodes.values()].filter(isLabeled).length);
    this.#uncovered.set(uncovered);
    const now = clock.monotonic();
    this.#surplusSince = new Map(surplus.map(({ name }) => [name, this.#surplusSince.get(name) ?? now]));
    const isDue = ({ name }: CachedNode): boolean => now - (this.#surplusSince.get(name) ?? now) >= surplusMs;
    await this.#label(add, true);
    // Agents on all nodes need no successor.
    await this.#label(wanted === 'all' ? surplus : surplus.filter(isDue), false);
  }

  async #label(nodes: readonly CachedNode[], wanted: boolean): Promise<void> {
    const { client, signal, log } = this.#leading;
    const change = async ({ name, pool }: CachedNode): Promise<boolean> => {
      await ignoring('not-found', client.patch(paths.nodes(name), agentLabelPatch(wanted), { signal }));
      log.info(
        { node: name, pool },
        wanted ? 'the node was labeled for an agent' : 'the label for an agent was removed from the node',
      );
      return true;
    };
    await changeEach(nodes, change, signal);
  }
}
