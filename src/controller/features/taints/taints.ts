/**
 * Taints (off by default): nodes of `taintArchitectures` get `<taintKey>=<architecture>:NoSchedule`. The
 * webhook gives new pods their tolerations. This feature changes running clusters. One key, `nodes`, compares
 * all nodes and pods; each pod that lacks a toleration is another key. For each architecture:
 *
 * 1. `tolerate-pods.ts`: pods on its nodes get the toleration. Pods of DaemonSets and static pods need none.
 * 2. `blockers.ts`: DaemonSets and pods that would lose a node block the taint, and are reported.
 * 3. Then the nodes get the taint. From the first node on, the architecture is established: a new node gets
 *    the taint at once, before pods without the toleration land there.
 *
 * If an architecture leaves the list, our taints go at once. If the key changes, old taints go when the new
 * one comes or is blocked: new pods tolerate only the new one. All state is in the cluster.
 */
import { ownNames } from '../../../names/keys.ts';
import { architectureOf } from '../../../nodes/classify.ts';
import { changeEach, changeObject } from '../../../kube/api/change.ts';
import type { KubeError } from '../../../kube/api/errors.ts';
import type { Node, Taint } from '../../../kube/api/objects.ts';
import { paths } from '../../../kube/api/paths.ts';
import { gauge, itemCounts } from '../../../telemetry/metrics.ts';
import type { CachedNode, RunningPod } from '../../state/cached.ts';
import type { Enqueue, Feature, LeaderContext, ReconcileResult, Work } from '../../lead/feature.ts';
import { skippedPods } from '../../pods/skipped-pods.ts';
import { tolerates } from '../../pods/chosen-nodes.ts';
import { podReference } from '../../pods/workload.ts';
import { blockingDaemonSets, createTaintEvents, strandedPods, type Blocker } from './blockers.ts';
import { knownKeys, recordedKeys, taintPatch, type TaintSettings } from './own-taint.ts';
import {
  isOrdinary,
  nodeMatters,
  planNodes,
  waitsForPods,
  wantedTaint,
  type ArchitecturePlan,
} from './plan.ts';
import { refusalKey, tolerate, type Refusals } from './tolerate-pods.ts';

const taintNodes = gauge('archwright_taint_nodes', 'Nodes of the architectures in taintArchitectures.', {
  state: ['tainted', 'waiting'],
});

const taintPodsWaiting = gauge(
  'archwright_taint_pods_waiting',
  'Running pods on nodes of taintArchitectures without the toleration.',
);

const taintBlockers = gauge(
  'archwright_taint_blockers',
  'Objects that hold taints back: pods that refuse the toleration, DaemonSets without it, pods that fit no other node.',
  { reason: ['pods', 'daemonsets', 'no-other-node'] },
);

/** Pods and the configuration are compared this often; nodes also when they change. */
const intervalMs = 10_000;
/** Few, so that gates, which share the limiter, come first. */
const workers = 6;

const added = 'taints were added to nodes';
const removed = 'taints were removed from nodes';

export const taints: Feature = {
  name: 'taints',
  metrics: [taintNodes, taintPodsWaiting, taintBlockers],
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
    return createTaints(leader, enqueue);
  },
};

export function createTaints(leader: LeaderContext, enqueue: Enqueue): Work {
  const { caches, client, configuration, log, metrics, namespace, signal } = leader;
  const tainted = metrics.gauge(taintNodes, { state: 'tainted' });
  const untainted = metrics.gauge(taintNodes, { state: 'waiting' });
  const podsWaiting = metrics.gauge(taintPodsWaiting);
  const showBlockers = itemCounts(metrics, taintBlockers);
  const report = createTaintEvents(leader);
  const refusals: Refusals = new Map();
  let known: { readonly of: string; readonly keys: readonly string[] } | undefined;

  /** @throws KubeError if it is temporary; that of a refused node after all others are done */
  async function compare(): Promise<void> {
    const settings = configuration();
    const { architectures, clear } = planNodes(caches.nodes.values(), settings, await keysOf(settings));
    const all = new Set(architectures.flatMap(({ nodes }) => [...nodes.keys()]));
    const waiting = architectures.reduce((sum, each) => sum + each.waiting.length, 0);
    untainted.set(waiting);
    tainted.set(all.size - waiting);
    const refused = [...(await changeNodes(clear, settings, removed))];
    // New nodes do not wait for pods.
    for (const each of architectures)
      if (each.established) refused.push(...(await changeNodes(each.waiting, settings, added)));
    const isSkipped = skippedPods(leader);
    const others = [...caches.nodes.values()].filter(({ name }) => !all.has(name));
    const blockers: Blocker[] = [];
    const lackingPods = new Set<string>();
    for (const each of architectures) {
      const pods = podsOf(each, isSkipped);
      for (const pod of pods.missing) lackingPods.add(refusalKey(pod, each.taint));
      const found = await blockersOf(each, pods, others);
      // That took a while, and the settings may have changed.
      if (configuration() !== settings) return;
      blockers.push(...found);
      if (!waitsForPods(each)) continue;
      if (found.length > 0) refused.push(...(await removeOutdated(each, settings)));
      else if (pods.missing.length === 0) refused.push(...(await changeNodes(each.waiting, settings, added)));
    }
    podsWaiting.set(lackingPods.size);
    for (const key of refusals.keys()) if (!lackingPods.has(key)) refusals.delete(key);
    // A refused pod is reported even if the nodes have their taint already.
    report(blockers);
    showBlockers(
      blockers.filter(({ isBlocked }) => isBlocked),
      ({ reason }) => [{ reason }],
    );
    if (refused[0]) throw refused[0];
  }

  /** Pods on the nodes of an architecture without the toleration; `missing`: those that are to get it. */
  function podsOf({ taint, nodes }: ArchitecturePlan, isSkipped: (pod: RunningPod) => boolean) {
    const lacking = [...caches.runningPods.values()].filter(
      (pod) => nodes.has(pod.node) && !pod.deleting && !tolerates(pod.tolerations, taint),
    );
    const bySkipped = Map.groupBy(lacking.filter(isOrdinary), isSkipped);
    return { lacking, missing: bySkipped.get(false) ?? [], skipped: bySkipped.get(true) ?? [] };
  }

  /** Enqueues the pods that are to get the toleration and were not refused. @throws KubeError */
  async function blockersOf(
    plan: ArchitecturePlan,
    { lacking, missing, skipped }: ReturnType<typeof podsOf>,
    others: readonly CachedNode[],
  ): Promise<readonly Blocker[]> {
    const { taint } = plan;
    const isBlocked = waitsForPods(plan);
    const found: Blocker[] = [];
    for (const pod of missing) {
      const refusal = refusals.get(refusalKey(pod, taint));
      if (refusal === undefined) enqueue(`${pod.namespace}/${pod.name}`);
      else found.push({ reason: 'pods', taint, about: podReference(pod), why: refusal.why, isBlocked });
    }
    if (!isBlocked) return found;
    const daemonSets = await blockingDaemonSets(plan, lacking, leader);
    return [...found, ...daemonSets, ...(await strandedPods(plan, skipped, others, signal))];
  }

  /** New pods tolerate only the current key. While its taint is blocked, an older one would exclude them. */
  async function removeOutdated({ taint, waiting }: ArchitecturePlan, settings: TaintSettings) {
    const outdated = waiting.filter(({ ownTaintKey = taint.key }) => ownTaintKey !== taint.key);
    return await changeNodes(outdated, settings, removed, () => undefined);
  }

  /** Gives a pod the toleration of its node's taint. @throws KubeError if it is not about the pod */
  async function toleratePod(key: string): Promise<ReconcileResult> {
    const [podNamespace = '', name = ''] = key.split('/');
    const pod = caches.runningPods.get(podNamespace, name);
    const node = pod && caches.nodes.get('', pod.node);
    const taint = node && wantedTaint(node, configuration());
    if (!pod || !taint || !isOrdinary(pod) || skippedPods(leader)(pod)) return undefined;
    return await tolerate(pod, taint, refusals, leader);
  }

  /** Read once for each change of the settings: only the leader writes them. */
  async function keysOf(settings: TaintSettings): Promise<readonly string[]> {
    const of = `${settings.taintKey} ${settings.taintArchitectures.length > 0}`;
    if (known?.of !== of) {
      const path = paths.leases(namespace, ownNames(configuration()).lease);
      known = { of, keys: await knownKeys(client, path, settings, signal) };
    }
    return known.keys;
  }

  /**
   * Decides the taint of each node from the node as it is now.
   * @param done for the log
   * @returns the errors of nodes that were refused
   * @throws KubeError at once if it is temporary
   */
  async function changeNodes(
    nodes: readonly CachedNode[],
    settings: TaintSettings,
    done: string,
    wanted = (node: Node): Taint | undefined =>
      wantedTaint({ architecture: architectureOf(node), taints: node.spec?.taints ?? [] }, settings),
  ): Promise<readonly KubeError[]> {
    const keys = await keysOf(settings);
    const change = ({ name }: CachedNode): Promise<boolean> =>
      changeObject<Node>(client, paths.nodes(name), (node) => taintPatch(node, wanted(node), keys), {
        signal,
      });
    const { count, refused } = await changeEach(nodes, change, signal);
    const architectures = [...new Set(nodes.map(({ architecture }) => architecture))];
    if (count > 0) log.info({ architectures, nodes: count }, done);
    return refused;
  }

  return {
    keys: () => ['nodes'],
    reconcile: async (key) => {
      if (key !== 'nodes') return await toleratePod(key);
      await compare();
      return { requeueAfterMs: intervalMs };
    },
  };
}
