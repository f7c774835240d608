/** One leader's work on taints: rounds that compare what is there with what is wanted, and do the difference. */
import { architectureOf } from '../../cluster/objects.ts';
import { concurrently } from '../../async/concurrently.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { Node, Taint } from '../../kube/api/objects.ts';
import type { CachedNode, RunningPod } from '../caches/caches.ts';
import type { Leading } from '../leadership/leading.ts';
import { createSkippedPods } from '../scope/skipped-pods.ts';
import { changeNode } from './change-node.ts';
import { blockingDaemonSets, strandedPods } from './blockers.ts';
import { holdReasons, taintLevels } from './metrics.ts';
import {
  isOrdinary,
  planNodes,
  taintSettings,
  wantedTaint,
  type ArchitecturePlan,
  type NodesPlan,
  type TaintSettings,
} from './plan.ts';
import { tolerates } from '../scope/node-room.ts';
import { createRefusals } from './refusals.ts';
import { createTaintEvents, type Blocker } from './events.ts';
import { toleratePods, type PodToTolerate } from './tolerate-pods.ts';

const nodeWorkers = 4;
/** Pods that come meanwhile have their toleration; those that come without, such as while the webhook is away, keep coming. */
const scans = 5;
/** Of one architecture. Where so many pods rest, one more a round is tried still: others must not wait behind them for ever. */
const maxRefused = 20;

/** Does what can be done now. Each throws KubeError where the rest has to be tried again. */
export interface TaintReconciler {
  /** What needs no look at pods: taints that are not wanted any more, and nodes of architectures that are done. */
  nodesRound(): Promise<void>;
  /** Tolerations of pods, and after them the first taints of an architecture. */
  podsRound(): Promise<void>;
}

type Refused = Extract<Blocker, { reason: 'pods' }>;

/** Makes the worker of one leader. */
export function createTaintReconciler(leading: Leading): TaintReconciler {
  const { signal, client, caches, configuration, log, step } = leading;
  const levels = taintLevels(leading.metrics);
  const telling = createTaintEvents(leading);
  const refusals = createRefusals(leading.clock);
  const leftAlone = createSkippedPods(leading);
  let isLeftAlone: (pod: RunningPod) => boolean = () => true;
  /** By architecture. */
  let podsWaiting = new Map<string, number>();

  async function nodesRound(): Promise<void> {
    const settings = taintSettings(configuration());
    const plan = planNodes(caches.nodes.values(), settings);
    showNodes(plan);
    await takenOff(await change(plan.clear, settings));
    for (const each of plan.architectures) if (each.established) await taint(each, settings);
  }

  async function podsRound(): Promise<void> {
    const atFirst = configuration();
    const settings = taintSettings(atFirst);
    const plan = planNodes(caches.nodes.values(), settings);
    const chosen = new Set(plan.architectures.map(({ architecture }) => architecture));
    if (plan.architectures.length > 0) isLeftAlone = await leftAlone();
    showPodsWaiting([...podsWaiting].filter(([architecture]) => chosen.has(architecture)));
    const holds: Blocker[] = [];
    const allRefused: Refused[] = [];
    for (const each of plan.architectures) {
      const refused = await tolerateAll(each);
      // It took a while; what was wanted then may not be any more.
      if (configuration() !== atFirst) return;
      allRefused.push(...refused);
      if (each.established || each.waiting.length === 0) continue;
      const found = [...refused, ...(await holdsOf(each, plan))];
      holds.push(...found);
      if (found.length === 0) await taint(each, settings);
      else await withdraw(each, settings);
    }
    refusals.keep(allRefused);
    // A pod without toleration is told of also where the nodes have their taint long since.
    telling.tell([...allRefused, ...holds.filter(({ reason }) => reason !== 'pods')]);
    for (const reason of holdReasons)
      levels.holds[reason].set(holds.filter((hold) => hold.reason === reason).length);
  }

  function showNodes({ architectures }: NodesPlan): void {
    const waiting = architectures.reduce((sum, each) => sum + each.waiting.length, 0);
    levels.waiting.set(waiting);
    levels.tainted.set(architectures.reduce((sum, each) => sum + each.nodes.size, 0) - waiting);
  }

  function showPodsWaiting(counts: Iterable<readonly [string, number]>): void {
    podsWaiting = new Map(counts);
    levels.podsWaiting.set([...podsWaiting.values()].reduce((sum, count) => sum + count, 0));
  }

  async function taint({ architecture, waiting }: ArchitecturePlan, settings: TaintSettings): Promise<void> {
    const changed = await change(waiting, settings);
    if (changed === 0) return;
    log.info({ architecture, nodes: changed }, 'nodes have their taint');
    await step('taints/nodes-done');
  }

  /** New pods tolerate the key that is wanted now. While that taint is held back, one of a key before it would keep them out. */
  async function withdraw(
    { taint: wanted, waiting }: ArchitecturePlan,
    settings: TaintSettings,
  ): Promise<void> {
    const outdated = waiting.filter(({ ownTaintKey }) => (ownTaintKey ?? wanted.key) !== wanted.key);
    await takenOff(await change(outdated, settings, () => undefined));
  }

  async function takenOff(nodes: number): Promise<void> {
    if (nodes === 0) return;
    log.info({ nodes }, 'taints are taken off');
    await step('taints/cleared');
  }

  /**
   * What a node is to have is found out from the node as it is by then.
   * @returns how many were changed
   * @throws KubeError; one node that cannot be changed keeps no other from it
   */
  async function change(
    nodes: readonly CachedNode[],
    settings: TaintSettings,
    wanted = (node: Node): Taint | undefined =>
      wantedTaint({ architecture: architectureOf(node), taints: node.spec?.taints ?? [] }, settings),
  ): Promise<number> {
    const failures: KubeError[] = [];
    const changed = await concurrently(nodes, nodeWorkers, async ({ name }) => {
      signal.throwIfAborted();
      try {
        if (!(await changeNode(name, wanted, { client, signal, keys: [settings.key] }))) return false;
        await step('taints/node');
        return true;
      } catch (error) {
        if (!(error instanceof KubeError) || error.temporary) throw error;
        failures.push(error);
        return false;
      }
    });
    if (failures[0]) throw failures[0];
    return changed.filter(Boolean).length;
  }

  async function tolerateAll(plan: ArchitecturePlan): Promise<readonly Refused[]> {
    const { architecture, taint: wanted } = plan;
    const established = plan.established || plan.waiting.length === 0;
    // The cache may not have heard yet of what was done here.
    const done = new Set<string>();
    for (let scan = 0; scan < scans; scan += 1) {
      const lacking = lackingPods(plan).filter(({ pod }) => !done.has(pod.uid));
      showPodsWaiting([...podsWaiting, [architecture, lacking.length]]);
      if (lacking.length === 0) break;
      let left = lacking.length;
      const due = lacking.filter(({ pod }) => !refusals.isResting(pod, wanted));
      if (due.length > 0)
        log.info({ architecture, pods: due.length }, 'running pods get the toleration of the taint');
      const refused = await toleratePods(due, {
        client,
        signal,
        maxRefused: Math.max(1, maxRefused - (lacking.length - due.length)),
        done: async (pod) => {
          done.add(pod.uid);
          left -= 1;
          showPodsWaiting([...podsWaiting, [architecture, left]]);
          await step('taints/pod');
        },
      });
      for (const { pod, error } of refused) refusals.refused(pod, wanted, error.message);
      const still = lacking.flatMap(({ pod }): Refused[] => {
        const why = done.has(pod.uid) ? undefined : refusals.why(pod, wanted);
        return why === undefined ? [] : [{ reason: 'pods', taint: wanted, pod, why, established }];
      });
      if (still.length > 0) return still;
    }
    if (done.size > 0) await step('taints/pods-done');
    return [];
  }

  function lackingPods({ nodes, taint: wanted }: ArchitecturePlan): readonly PodToTolerate[] {
    const found: PodToTolerate[] = [];
    for (const pod of caches.runningPods.values()) {
      if (!nodes.has(pod.node) || tolerates(pod.tolerations, wanted)) continue;
      if (isOrdinary(pod) && !isLeftAlone(pod)) found.push({ pod, taint: wanted });
    }
    return found;
  }

  async function holdsOf(plan: ArchitecturePlan, all: NodesPlan): Promise<readonly Blocker[]> {
    const pods = caches.runningPods;
    const { taint: wanted } = plan;
    const sets = await blockingDaemonSets(plan, pods.values(), { client, signal });
    const tainted = new Set(all.architectures.flatMap(({ nodes }) => [...nodes.keys()]));
    const others = [...caches.nodes.values()].filter(({ name }) => !tainted.has(name));
    const asker = { client, signal };
    const stranded = await strandedPods(plan, others, pods.values(), isLeftAlone, asker);
    return [
      ...sets.map((daemonSet) => ({ reason: 'daemonsets' as const, taint: wanted, daemonSet })),
      ...stranded.map((pod) => ({ reason: 'no-other-node' as const, taint: wanted, pod })),
    ];
  }

  return { nodesRound, podsRound };
}
