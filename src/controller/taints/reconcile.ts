/** Compares the nodes and pods of the cluster with the settings, and changes what differs. */
import { architectureOf } from '../../cluster/objects.ts';
import { concurrently } from '../../async/concurrently.ts';
import { changeObject } from '../../kube/api/change.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { Node, Taint } from '../../kube/api/objects.ts';
import type { CachedNode, RunningPod } from '../caches/cached.ts';
import type { Leading } from '../leadership/leading.ts';
import { createSkippedPods } from '../scope/skipped-pods.ts';
import { tolerates } from '../scope/node-readiness.ts';
import { blockingDaemonSets, strandedPods } from './blockers.ts';
import { createTaintEvents, type Blocker, type RefusedPod, type TaintEvents } from './events.ts';
import { blockerReasons, taintGauges, type TaintGauges } from './metrics.ts';
import { taintPatch } from './own-taint.ts';
import {
  isOrdinary,
  planNodes,
  taintSettings,
  wantedTaint,
  type ArchitecturePlan,
  type NodesPlan,
  type TaintSettings,
} from './plan.ts';
import { createRefusals, type Refusals } from './refusals.ts';
import { paths } from '../../kube/api/paths.ts';
import { toleratePods } from './tolerate-pods.ts';

const nodeWorkers = 4;
/** New pods come with the toleration. Pods that come without, for example while the webhook is down, keep coming. */
const scans = 5;
/** Per architecture. If so many pods are backed off, one more per run is still tried: the others must not wait forever. */
const maxRefused = 20;

/** Each method throws KubeError if the rest has to be tried again. */
export class TaintReconciler {
  readonly #leading: Leading;
  readonly #gauges: TaintGauges;
  readonly #events: TaintEvents;
  readonly #refusals: Refusals;
  readonly #skippedPods: ReturnType<typeof createSkippedPods>;
  #isSkipped: (pod: RunningPod) => boolean = () => true;
  /** Pods without the toleration, by architecture. */
  #podsWaiting = new Map<string, number>();

  constructor(leading: Leading) {
    this.#leading = leading;
    this.#gauges = taintGauges(leading.metrics);
    this.#events = createTaintEvents(leading);
    this.#refusals = createRefusals(leading.clock);
    this.#skippedPods = createSkippedPods(leading);
  }

  /** Work that needs no look at pods: taints that are no longer wanted, and new nodes of established architectures. */
  async reconcileNodes(): Promise<void> {
    const { caches, configuration } = this.#leading;
    const settings = taintSettings(configuration());
    const plan = planNodes(caches.nodes.values(), settings);
    this.#showNodes(plan);
    await this.#removed(await this.#changeNodes(plan.clear, settings));
    for (const each of plan.architectures) if (each.established) await this.#taint(each, settings);
  }

  /** Tolerations of pods, and after them the first taints of an architecture. */
  async reconcilePods(): Promise<void> {
    const { caches, configuration } = this.#leading;
    const atFirst = configuration();
    const settings = taintSettings(atFirst);
    const plan = planNodes(caches.nodes.values(), settings);
    const chosen = new Set(plan.architectures.map(({ architecture }) => architecture));
    if (chosen.size > 0) this.#isSkipped = await this.#skippedPods();
    this.#showPodsWaiting([...this.#podsWaiting].filter(([architecture]) => chosen.has(architecture)));
    const blockers: Blocker[] = [];
    const refused: RefusedPod[] = [];
    for (const each of plan.architectures) {
      const refusedHere = await this.#tolerateAll(each);
      // That took a while, and the settings may have changed.
      if (configuration() !== atFirst) return;
      refused.push(...refusedHere);
      if (each.established || each.waiting.length === 0) continue;
      const found = [...refusedHere, ...(await this.#blockersOf(each, plan))];
      blockers.push(...found);
      if (found.length === 0) await this.#taint(each, settings);
      else await this.#removeOutdated(each, settings);
    }
    this.#refusals.keep(refused);
    // A refused pod is reported even if the nodes have their taint already.
    this.#events.record([...refused, ...blockers.filter(({ reason }) => reason !== 'pods')]);
    for (const reason of blockerReasons)
      this.#gauges.blockers[reason].set(blockers.filter((each) => each.reason === reason).length);
  }

  #showNodes({ architectures }: NodesPlan): void {
    const waiting = architectures.reduce((sum, each) => sum + each.waiting.length, 0);
    this.#gauges.waiting.set(waiting);
    this.#gauges.tainted.set(architectures.reduce((sum, each) => sum + each.nodes.size, 0) - waiting);
  }

  #showPodsWaiting(counts: Iterable<readonly [string, number]>): void {
    this.#podsWaiting = new Map(counts);
    this.#gauges.podsWaiting.set([...this.#podsWaiting.values()].reduce((sum, count) => sum + count, 0));
  }

  async #taint({ architecture, waiting }: ArchitecturePlan, settings: TaintSettings): Promise<void> {
    const { log, step } = this.#leading;
    const nodes = await this.#changeNodes(waiting, settings);
    if (nodes === 0) return;
    log.info({ architecture, nodes }, 'taints were added to nodes');
    await step('taints/nodes-done');
  }

  /** New pods tolerate the current key only. While its taint is blocked, our taint of an earlier key would keep them out. */
  async #removeOutdated({ taint, waiting }: ArchitecturePlan, settings: TaintSettings): Promise<void> {
    const outdated = waiting.filter(({ ownTaintKey }) => (ownTaintKey ?? taint.key) !== taint.key);
    await this.#removed(await this.#changeNodes(outdated, settings, () => undefined));
  }

  async #removed(nodes: number): Promise<void> {
    const { log, step } = this.#leading;
    if (nodes === 0) return;
    log.info({ nodes }, 'taints were removed from nodes');
    await step('taints/cleared');
  }

  /**
   * Decides the taint of each node from the node as it is now.
   * @returns how many nodes were changed
   * @throws KubeError; a node that cannot be changed does not stop the others
   */
  async #changeNodes(
    nodes: readonly CachedNode[],
    settings: TaintSettings,
    wanted = (node: Node): Taint | undefined =>
      wantedTaint({ architecture: architectureOf(node), taints: node.spec?.taints ?? [] }, settings),
  ): Promise<number> {
    const { client, signal, step } = this.#leading;
    const failures: KubeError[] = [];
    const changed = await concurrently(nodes, nodeWorkers, async ({ name }) => {
      signal.throwIfAborted();
      try {
        const isChanged = await changeObject<Node>(
          client,
          paths.nodes(name),
          (node) => taintPatch(node, wanted(node), [settings.key]),
          { signal },
        );
        if (isChanged) await step('taints/node');
        return isChanged;
      } catch (error) {
        if (!(error instanceof KubeError) || error.temporary) throw error;
        failures.push(error);
        return false;
      }
    });
    if (failures[0]) throw failures[0];
    return changed.filter(Boolean).length;
  }

  /** @returns pods that the API server refuses to change */
  async #tolerateAll(plan: ArchitecturePlan): Promise<readonly RefusedPod[]> {
    const { architecture, taint } = plan;
    const { client, signal, log, step } = this.#leading;
    const established = plan.established || plan.waiting.length === 0;
    // The cache may not show these changes yet.
    const done = new Set<string>();
    for (let scan = 0; scan < scans; scan += 1) {
      const missing = this.#podsWithoutToleration(plan).filter(({ uid }) => !done.has(uid));
      let left = missing.length;
      this.#showPodsWaiting([...this.#podsWaiting, [architecture, left]]);
      if (left === 0) break;
      const due = missing.filter((pod) => !this.#refusals.isBackedOff(pod, taint));
      if (due.length > 0)
        log.info({ architecture, pods: due.length }, 'running pods get the toleration of the taint');
      const refused = await toleratePods(due, taint, {
        client,
        signal,
        maxRefused: Math.max(1, maxRefused - (missing.length - due.length)),
        done: async (pod) => {
          done.add(pod.uid);
          left -= 1;
          this.#showPodsWaiting([...this.#podsWaiting, [architecture, left]]);
          await step('taints/pod');
        },
      });
      for (const { pod, error } of refused) this.#refusals.add(pod, taint, error.message);
      const still = missing.flatMap((pod): RefusedPod[] => {
        const why = done.has(pod.uid) ? undefined : this.#refusals.why(pod, taint);
        return why === undefined ? [] : [{ reason: 'pods', taint, pod, why, established }];
      });
      if (still.length > 0) return still;
    }
    if (done.size > 0) await step('taints/pods-done');
    return [];
  }

  #podsWithoutToleration({ nodes, taint }: ArchitecturePlan): readonly RunningPod[] {
    return [...this.#leading.caches.runningPods.values()].filter(
      (pod) =>
        nodes.has(pod.node) && !tolerates(pod.tolerations, taint) && isOrdinary(pod) && !this.#isSkipped(pod),
    );
  }

  async #blockersOf(plan: ArchitecturePlan, all: NodesPlan): Promise<readonly Blocker[]> {
    const { caches } = this.#leading;
    const { taint } = plan;
    const daemonSets = await blockingDaemonSets(plan, caches.runningPods.values(), this.#leading);
    const tainted = new Set(all.architectures.flatMap(({ nodes }) => [...nodes.keys()]));
    const others = [...caches.nodes.values()].filter(({ name }) => !tainted.has(name));
    const pods = caches.runningPods.values();
    const stranded = await strandedPods(plan, others, pods, this.#isSkipped, this.#leading);
    return [
      ...daemonSets.map((daemonSet) => ({ reason: 'daemonsets' as const, taint, daemonSet })),
      ...stranded.map((pod) => ({ reason: 'no-other-node' as const, taint, pod })),
    ];
  }
}
