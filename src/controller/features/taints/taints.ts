/**
 * Taints (off by default): nodes of `taintArchitectures` get `<taintKey>=<architecture>:NoSchedule`. The
 * webhook gives new pods their tolerations. This feature changes running clusters. For each architecture:
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
import type { Feature, LeaderContext } from '../../lead/feature.ts';
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
import { Refusals, toleratePods } from './tolerate-pods.ts';

/** Pods and the configuration are compared this often; nodes also when they change. */
const intervalMs = 10_000;
/** Per architecture. Beyond it, each run still tries one more pod, so the others do not wait forever. */
const maxRefused = 20;

export const taints: Feature = {
  name: 'taints',
  metrics: taintMetrics,
  inRounds: true,
  // Two keys: thousands of pods take minutes, and a new node must not wait for them.
  workers: 2,
  resyncMs: intervalMs,
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
    const work = new TaintReconciler(leader);
    leader.caches.nodes.onEach(({ previous, object }) => {
      if (nodeMatters(previous, object)) enqueue('nodes');
    });
    return {
      keys: () => ['nodes', 'pods'],
      reconcile: (key) => (key === 'nodes' ? work.reconcileNodes() : work.reconcilePods()),
    };
  },
};

/** Each method throws KubeError if the rest has to be tried again. */
export class TaintReconciler {
  readonly #leader: LeaderContext;
  readonly #gauges: TaintGauges;
  readonly #recordEvents: ReturnType<typeof createTaintEvents>;
  readonly #refusals: Refusals;
  #isSkipped: (pod: RunningPod) => boolean = () => true;
  #podsWaiting = new Map<string, number>();
  #keys: { readonly of: string; readonly keys: readonly string[] } | undefined;

  constructor(leader: LeaderContext) {
    this.#leader = leader;
    this.#gauges = taintGauges(leader.metrics);
    this.#recordEvents = createTaintEvents(leader);
    this.#refusals = new Refusals(leader.clock);
  }

  /** Work without pods: taints that are no longer wanted, and new nodes of established architectures. */
  async reconcileNodes(): Promise<void> {
    const { caches, configuration } = this.#leader;
    const settings = configuration();
    const plan = planNodes(caches.nodes.values(), settings, await this.#keysOf(settings));
    const waiting = plan.architectures.reduce((sum, each) => sum + each.waiting.length, 0);
    this.#gauges.waiting.set(waiting);
    this.#gauges.tainted.set(plan.architectures.reduce((sum, each) => sum + each.nodes.size, 0) - waiting);
    this.#logRemoved(await this.#changeNodes(plan.clear, settings));
    for (const each of plan.architectures) if (each.established) await this.#taint(each, settings);
  }

  async reconcilePods(): Promise<void> {
    const { caches, configuration } = this.#leader;
    const settings = configuration();
    const plan = planNodes(caches.nodes.values(), settings, await this.#keysOf(settings));
    const chosen = new Set(plan.architectures.map(({ architecture }) => architecture));
    this.#isSkipped = skippedPods(this.#leader);
    this.#showPodsWaiting([...this.#podsWaiting].filter(([architecture]) => chosen.has(architecture)));
    const blockers: Blocker[] = [];
    const refused: RefusedPod[] = [];
    for (const each of plan.architectures) {
      const refusedHere = await this.#tolerateAll(each);
      // That took a while, and the settings may have changed.
      if (configuration() !== settings) return;
      refused.push(...refusedHere);
      if (each.established || each.waiting.length === 0) continue;
      const found = [...refusedHere, ...(await this.#blockersOf(each, plan))];
      blockers.push(...found);
      if (found.length === 0) await this.#taint(each, settings);
      else await this.#removeOutdated(each, settings);
    }
    this.#refusals.keep(refused);
    // A refused pod is reported even if the nodes have their taint already.
    this.#recordEvents([...refused, ...blockers.filter(({ reason }) => reason !== 'pods')]);
    this.#gauges.showBlockers(blockers, ({ reason }) => [{ reason }]);
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

  #showPodsWaiting(counts: Iterable<readonly [string, number]>): void {
    this.#podsWaiting = new Map(counts);
    this.#gauges.podsWaiting.set([...this.#podsWaiting.values()].reduce((sum, count) => sum + count, 0));
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

  async #tolerateAll(plan: ArchitecturePlan): Promise<readonly RefusedPod[]> {
    const { architecture, taint } = plan;
    const { client, signal, log } = this.#leader;
    const established = plan.established || plan.waiting.length === 0;
    const missing = this.#podsWithoutToleration(plan);
    let left = missing.length;
    this.#showPodsWaiting([...this.#podsWaiting, [architecture, left]]);
    const due = missing.filter((pod) => !this.#refusals.isBackedOff(pod, taint));
    if (due.length > 0)
      log.info({ architecture, pods: due.length }, 'running pods get the toleration of the taint');
    const done = new Set<string>();
    await toleratePods(due, taint, this.#refusals, {
      client,
      signal,
      maxRefused: Math.max(1, maxRefused - (missing.length - due.length)),
      done: (pod) => {
        done.add(pod.uid);
        left -= 1;
        this.#showPodsWaiting([...this.#podsWaiting, [architecture, left]]);
      },
    });
    return missing.flatMap((pod): RefusedPod[] => {
      const why = done.has(pod.uid) ? undefined : this.#refusals.why(pod, taint);
      return why === undefined ? [] : [{ reason: 'pods', taint, pod, why, established }];
    });
  }

  #podsWithoutToleration({ nodes, taint }: ArchitecturePlan): readonly RunningPod[] {
    return [...this.#leader.caches.runningPods.values()].filter(
      (pod) =>
        nodes.has(pod.node) && !tolerates(pod.tolerations, taint) && isOrdinary(pod) && !this.#isSkipped(pod),
    );
  }

  async #blockersOf(plan: ArchitecturePlan, all: NodesPlan): Promise<readonly Blocker[]> {
    const { taint } = plan;
    const daemonSets = await blockingDaemonSets(plan, this.#leader);
    const tainted = new Set(all.architectures.flatMap(({ nodes }) => [...nodes.keys()]));
    const others = [...this.#leader.caches.nodes.values()].filter(({ name }) => !tainted.has(name));
    const stranded = await strandedPods(plan, others, this.#isSkipped, this.#leader);
    return [
      ...daemonSets.map((daemonSet) => ({ reason: 'daemonsets' as const, taint, daemonSet })),
      ...stranded.map((pod) => ({ reason: 'no-other-node' as const, taint, pod })),
    ];
  }
}
