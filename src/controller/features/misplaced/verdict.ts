/**
 * The decision about one misplaced pod, by the webhook's decision for a new pod: whether its successor would get a
 * node that can run it.
 */
import type { Pod, PodTemplate } from '../../../kube/api/objects.ts';
import { decide } from '../../../placement/decide.ts';
import type { PlacementDecision } from '../../../placement/decision.ts';
import { expressionGroups } from '../../../placement/patch/additions.ts';
import { pinsNode } from '../../../placement/pod/terms.ts';
import { ownArchitecturesOf } from '../../../placement/rules/constraint/own.ts';
import type { CachedNode } from '../../state/cached.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { choosing, letsIn, takesPods } from '../../pods/chosen-nodes.ts';
import { contextOf } from '../../pods/skipped-pods.ts';
import {
  daemonTemplateOf,
  isDaemon,
  isOfPlacedTemplate,
  lossesLeft,
  workloadOf,
  type Workload,
} from '../../pods/workload.ts';
import type { Report } from './events.ts';
import type { Cause, Evictions } from './evictions.ts';
import { readMisplaced, type MisplacedPod } from './misplaced-pod.ts';

export type EvictionVerdict =
  | { readonly kind: 'evict'; readonly workload: Workload; readonly cause: Cause }
  /** It stays, and the events say why. */
  | {
      readonly kind: 'report';
      readonly report: Exclude<Report, 'evicted' | 'held'>;
      readonly workload?: Workload;
    }
  /** The pod chooses its architecture itself, so it is not misplaced. */
  | { readonly kind: 'skipped' }
  /** It stays for now. `ms`: when to look again; `undefined`: after the usual pause. */
  | { readonly kind: 'later'; readonly ms?: number };

/** The pause of pods that wait for other pods of their workload. */
const waitForOthersMs = 5_000;
/** The cache shows a change by then. */
export const cacheLagMs = 5_000;

const later: EvictionVerdict = { kind: 'later' };

/** @throws KubeError */
export async function verdictOf(
  leader: LeaderContext,
  misplaced: MisplacedPod,
  evictions: Evictions,
): Promise<EvictionVerdict> {
  const { caches, configuration } = leader;
  const { pod, architecture, images, facts } = misplaced;
  const now = await readMisplaced(leader, misplaced);
  if (now === undefined) return { kind: 'later', ms: cacheLagMs };
  const context = { ...contextOf(leader, pod.namespace, pod), facts };
  if (isOfPlacedTemplate(pod)) {
    const template = await daemonTemplateOf(pod, leader);
    return typeof template === 'string' ? later : daemonVerdict(template, context, architecture, 'unplaced');
  }
  const terms = pod.nodeChoice?.terms ?? [];
  if (isDaemon(pod) || (terms.length > 0 && terms.every(pinsNode))) {
    // Another controller chooses the node, for example of OpenKruise. Its template is unknown.
    const { metadata: { labels, annotations } = {}, spec } = now;
    const { nodeName: _, affinity: _affinity, ...withoutNode } = spec;
    const template = { metadata: { labels, annotations }, spec: withoutNode };
    return daemonVerdict(template, context, architecture, 'pinned');
  }

  const verdict = verdictOfSuccessor(now, context, architecture, caches.nodes.values());
  if (verdict) return verdict;

  // Before the Job is read: the Job has counted a pod that is gone by then.
  const going = evictions.goingPods(pod.owner?.uid ?? '');
  const workload = pod.owner && (await workloadOf(pod.namespace, pod.owner, leader));
  if (workload === undefined) return later;
  const { misplacedPods: mode } = configuration();
  if (mode !== 'evict') return mode === 'event' ? { kind: 'report', report: 'reported', workload } : later;

  const left = workload.job === undefined ? Number.POSITIVE_INFINITY : lossesLeft(workload.job, now);
  if (left === 0) return { kind: 'report', report: 'last-try', workload };
  if (left - going <= 0) return { kind: 'later', ms: waitForOthersMs };

  const cause = { uid: workload.top.uid, digests: images.map(({ digest }) => digest), architecture };
  if (evictions.isSuccessor(pod, cause)) return { kind: 'report', report: 'again', workload };
  if (!evictions.hasRoom(pod, workload)) return { kind: 'later', ms: waitForOthersMs };
  return { kind: 'evict', workload, cause };
}

type ReplacementContext = ReturnType<typeof contextOf> & Pick<MisplacedPod, 'facts'>;

/**
 * What prevents that the successor runs elsewhere.
 * @param architecture of the node where the pod is
 * @returns `undefined`: a node that takes pods now can run it; `no-node`: no node of an architecture that has its
 * images takes it now; `later`: it may land here again
 */
export function verdictOfSuccessor(
  pod: Pod,
  { facts, ...context }: ReplacementContext,
  architecture: string,
  allNodes: Iterable<CachedNode>,
): EvictionVerdict | undefined {
  const { nodeName: _, ...spec } = pod.spec;
  const decision = decide({ ...context, pod: { ...pod, spec }, facts: (image) => facts.get(image) });
  const { outcome } = decision;
  // A widened pod did not choose its architectures: its successor keeps to the names that are put back.
  const named = decision.replaces?.widened && decision.own && ownArchitecturesOf(decision.own);
  if (outcome === 'skipped' || (outcome === 'own-constraint' && !named)) return { kind: 'skipped' };
  const required = outcome === 'own-constraint' ? named?.architectures : decision.required;
  if (outcome === 'denied' || outcome === 'pending') return { kind: 'report', report: 'no-architecture' };
  if (required === undefined || required.length === 0 || required.includes(architecture)) return later;
  const tolerations = [...(spec.tolerations ?? []), ...decision.tolerations];
  const isChosen = choiceOf({ ...decision, required });
  for (const node of allNodes) {
    const isExcluded = node.hostname !== undefined && decision.excludedNodes.includes(node.hostname);
    const isRight = node.architecture !== undefined && required.includes(node.architecture) && !isExcluded;
    if (!isRight || node.os !== decision.os || !takesPods(node)) continue;
    if (letsIn(node, tolerations) && isChosen(node)) return undefined;
  }
  return { kind: 'report', report: 'no-node' };
}

/** The choice of pod and policy among nodes. */
function choiceOf(decision: PlacementDecision): (node: CachedNode) => boolean {
  const { nodeSelector = {}, terms } = decision.own ?? {};
  const groups = expressionGroups(decision, false).map((matchExpressions) => ({ matchExpressions }));
  const isOfPolicy = choosing({ nodeSelector: {}, terms: groups });
  const isOfPod = choosing({ nodeSelector, terms });
  return (node) => isOfPod(node) && isOfPolicy(node);
}

/**
 * The report about a DaemonSet with a pod on a node that cannot run it. Its next pod comes to the same node,
 * so its pods are never evicted. The webhook places a template when it is applied; one applied without the
 * webhook makes pods for every new node. Placing it restarts all of its pods, so a person decides that.
 * @param unplaced the report if the template, applied again, avoids such nodes
 * @returns `later`: skipped, rolling out, or uncertain
 */
export function daemonVerdict(
  template: PodTemplate,
  { facts, ...context }: ReplacementContext,
  architecture: string,
  unplaced: 'unplaced' | 'pinned',
): EvictionVerdict {
  const { outcome, required, replaces } = decide({
    ...context,
    pod: template,
    template: 'DaemonSet',
    facts: (image) => facts.get(image),
  });
  if (outcome === 'denied' || outcome === 'pending') return { kind: 'report', report: 'no-architecture' };
  if (outcome !== 'placed' || required === undefined || required.includes(architecture)) return later;
  const isPlaced = replaces?.architectures !== undefined && !replaces.architectures.includes(architecture);
  return isPlaced ? later : { kind: 'report', report: unplaced };
}
