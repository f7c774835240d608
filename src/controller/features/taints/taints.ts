/**
 * Taints (off by default): nodes of `taintArchitectures` get `<taintKey>=<architecture>:NoSchedule`. The
 * webhook gives new pods their tolerations. This feature changes running clusters. One key, `nodes`, compares
 * all nodes and pods; each pod that lacks a toleration is another key. For each architecture:
 *
 * 1. `tolerate-pods.ts`: pods on its nodes get the toleration. Pods of DaemonSets and static pods need none.
 * 2. `blockers.ts`: DaemonSets and pods that would lose a node block the taint; `events.ts` reports them.
 * 3. Then the nodes get the taint. From the first node on, the architecture is established: a new node gets
 *    the taint at once, before pods without the toleration land there.
 *
 * If an architecture leaves the list, our taints go at once. If the key changes, old taints go when the new
 * one comes or is blocked: new pods tolerate only the new one. All state is in the cluster.
 */
import { ownNames } from '../../../names/own-names.ts';
import { architectureOf } from '../../../nodes/classify.ts';
import { changeEach, changeObject } from '../../../kube/api/change.ts';
import type { Node, Taint } from '../../../kube/api/objects.ts';
import { paths } from '../../../kube/api/paths.ts';
import type { CachedNode, RunningPod } from '../../state/cached.ts';
import type { Enqueue, Feature, LeaderContext, ReconcileResult, Work } from '../../lead/feature.ts';
import { skippedPods } from '../../pods/skipped-pods.ts';
import { tolerates } from '../../pods/chosen-nodes.ts';
import { blockingDaemonSets, strandedPods } from './blockers.ts';
import {
  createTaintEvents,
  taintGauges,
  taintMetrics,
  type Blocker,
  type RefusedPod,
  type TaintGauges,
} from './events.ts';
import { knownKeys, recordedKeys, taintPatch, type TaintSettings } from './own-taint.ts';
import {
  isOrdinary,
  nodeMatters,
  planNodes,
  wantedTaint,
  type ArchitecturePlan,
  type NodesPlan,
} from './plan.ts';
import { Refusals, tolerate } from './tolerate-pods.ts';

/** Pods and the configuration are compared this often; nodes also when they change. */
const intervalMs = 10_000;
/** Few, so that gates, which share the limiter, come first. */
const workers = 6;

export const taints: Feature = {
  name: 'taints',
  metrics: taintMetrics,
  inRounds: true,
  workers,
  leftovers: {
    nodes: {
      step: 'taints',
      what: 'taint',
      removal: async ({ taintKey }, lease) => {
        const known = [taintKey, ...recordedKeys(await lease())];
        return (node) => taintPatch(node, undefined, known);
      },
    },
  },
  start: (leader, enqueue) => {
    leader.caches.nodes.onEach(({ previous, object }) => {
      if (nodeMatters(previous, object)) enqueue('nodes');
    });
    return new Taints(leader, enqueue);
  },
};

export class Taints implements Work {
  readonly #leader: LeaderContext;
  readonly #enqueue: Enqueue;
  readonly #gauges: TaintGauges;
  readonly #recordEvents: ReturnType<typeof createTaintEvents>;
  readonly #refusals = new Refusals();
  #keys: { readonly of: string; readonly keys: readonly string[] } | undefined;

  constructor(leader: LeaderContext, enqueue: Enqueue) {
    this.#leader = leader;
    this.#enqueue = enqueue;
    this.#gauges = taintGauges(leader.metrics);
    this.#recordEvents = createTaintEvents(leader);
  }

  keys(): readonly string[] {
    return ['nodes'];
  }

  async reconcile(key: string): Promise<ReconcileResult> {
    if (key !== 'nodes') return await this.#tolerate(key);
    await this.#compare();
    return { requeueAfterMs: intervalMs };
  }

  async #compare(): Promise<void> {
    const { caches, configuration } = this.#leader;
    const settings = configuration();
    const plan = planNodes(caches.nodes.values(), settings, await this.#keysOf(settings));
    const nodes = plan.architectures.reduce((sum, each) => sum + each.nodes.size, 0);
    const waiting = plan.architectures.reduce((sum, each) => sum + each.waiting.length, 0);
    this.#gauges.waiting.set(waiting);
    this.#gauges.tainted.set(nodes - waiting);
    this.#logRemoved(await this.#changeNodes(plan.clear, settings));
    // New nodes do not wait for pods.
    for (const each of plan.architectures) if (each.established) await this.#taint(each, settings);
    const isSkipped = skippedPods(this.#leader);
    const blockers: Blocker[] = [];
    const refused: RefusedPod[] = [];
    const allMissing: Pick<RefusedPod, 'pod' | 'taint'>[] = [];
    for (const each of plan.architectures) {
      const missing = this.#podsWithoutToleration(each, isSkipped);
      allMissing.push(...missing.map((pod) => ({ pod, taint: each.taint })));
      const refusedHere = this.#refusals.of(missing, each);
      refused.push(...refusedHere);
      const known = new Set(refusedHere.map(({ pod }) => pod));
      for (const pod of missing) if (!known.has(pod)) this.#enqueue(`${pod.namespace}/${pod.name}`);
      if (each.established || each.waiting.length === 0) continue;
      const found = [...refusedHere, ...(await this.#blockersOf(each, plan, isSkipped))];
      // That took a while, and the settings may have changed.
      if (configuration() !== settings) return;
      blockers.push(...found);
      if (found.length > 0) await this.#removeOutdated(each, settings);
      else if (missing.length === 0) await this.#taint(each, settings);
    }
    this.#gauges.podsWaiting.set(allMissing.length);
    this.#refusals.keep(allMissing);
    // A refused pod is reported even if the nodes have their taint already.
    this.#recordEvents([...refused, ...blockers.filter(({ reason }) => reason !== 'pods')]);
    this.#gauges.showBlockers(blockers, ({ reason }) => [{ reason }]);
  }

  /** Gives a pod the toleration of its node's taint. @throws KubeError if it is not about the pod */
  async #tolerate(key: string): Promise<ReconcileResult> {
    const { caches, configuration } = this.#leader;
    const [namespace = '', name = ''] = key.split('/');
    const pod = caches.runningPods.get(namespace, name);
    const node = pod && caches.nodes.get('', pod.node);
    const taint = node && wantedTaint(node, configuration());
    if (!pod || !taint || !isOrdinary(pod) || skippedPods(this.#leader)(pod)) return undefined;
    return await tolerate(pod, taint, this.#refusals, this.#leader);
  }

  /** Read once for each change of the settings: only the leader writes them. */
  async #keysOf(settings: TaintSettings): Promise<readonly string[]> {
    const { client, namespace, configuration, signal } = this.#leader;
    const of = `${settings.taintKey} ${settings.taintArchitectures.length > 0}`;
    if (this.#keys?.of !== of) {
      const path = paths.leases(namespace, ownNames(configuration()).lease);
      this.#keys = { of, keys: await knownKeys(client, path, settings, signal) };
    }
    return this.#keys.keys;
  }

  async #taint({ architecture, waiting }: ArchitecturePlan, settings: TaintSettings): Promise<void> {
    const nodes = await this.#changeNodes(waiting, settings);
    if (nodes > 0) this.#leader.log.info({ architecture, nodes }, 'taints were added to nodes');
  }

  /** New pods tolerate only the current key. While its taint is blocked, an older one would exclude them. */
  async #removeOutdated({ taint, waiting }: ArchitecturePlan, settings: TaintSettings): Promise<void> {
    const outdated = waiting.filter(({ ownTaintKey }) => (ownTaintKey ?? taint.key) !== taint.key);
    this.#logRemoved(await this.#changeNodes(outdated, settings, () => undefined));
  }

  #logRemoved(nodes: number): void {
    if (nodes > 0) this.#leader.log.info({ nodes }, 'taints were removed from nodes');
  }

  /**
   * Decides the taint of each node from the node as it is now. @returns how many nodes were changed
   * @throws as `changeEach`
   */
  async #changeNodes(
    nodes: readonly CachedNode[],
    settings: TaintSettings,
    wanted = (node: Node): Taint | undefined =>
      wantedTaint({ architecture: architectureOf(node), taints: node.spec?.taints ?? [] }, settings),
  ): Promise<number> {
    const { client, signal } = this.#leader;
    const keys = await this.#keysOf(settings);
    const change = ({ name }: CachedNode): Promise<boolean> =>
      changeObject<Node>(client, paths.nodes(name), (node) => taintPatch(node, wanted(node), keys), {
        signal,
      });
    return await changeEach(nodes, change, signal);
  }

  #podsWithoutToleration(
    { nodes, taint }: ArchitecturePlan,
    isSkipped: (pod: RunningPod) => boolean,
  ): readonly RunningPod[] {
    return [...this.#leader.caches.runningPods.values()].filter(
      (pod) =>
        nodes.has(pod.node) && !tolerates(pod.tolerations, taint) && isOrdinary(pod) && !isSkipped(pod),
    );
  }

  async #blockersOf(
    plan: ArchitecturePlan,
    all: NodesPlan,
    isSkipped: (pod: RunningPod) => boolean,
  ): Promise<readonly Blocker[]> {
    const { taint } = plan;
    const daemonSets = await blockingDaemonSets(plan, this.#leader);
    const tainted = new Set(all.architectures.flatMap(({ nodes }) => [...nodes.keys()]));
    const others = [...this.#leader.caches.nodes.values()].filter(({ name }) => !tainted.has(name));
    const stranded = await strandedPods(plan, others, isSkipped, this.#leader);
    return [
      ...daemonSets.map((daemonSet) => ({ reason: 'daemonsets' as const, taint, daemonSet })),
      ...stranded.map((pod) => ({ reason: 'no-other-node' as const, taint, pod })),
    ];
  }
}
