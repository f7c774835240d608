/** The decision about one misplaced pod. */
import type { LeaderContext } from '../../lead/feature.ts';
import { contextOf } from '../../pods/decided-pod.ts';
import {
  daemonTemplateOf,
  isDaemon,
  isOfPlacedTemplate,
  isPinned,
  workloadOf,
  type Workload,
} from '../../pods/workload.ts';
import type { Report } from './events.ts';
import type { Cause, Evictions } from './evictions.ts';
import { lossesLeft } from '../../pods/job.ts';
import { readMisplaced, type MisplacedPod } from './misplaced-pod.ts';
import { daemonVerdict, pinnedVerdict, replacementOf } from './replacement.ts';

export type Verdict =
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

/** For pods that wait for other pods of their workload. */
const waitForOthersMs = 5_000;
/** The cache shows a change by then. */
export const cacheLagMs = 5_000;

const later: Verdict = { kind: 'later' };

/** @throws KubeError */
export async function verdictOf(
  leader: LeaderContext,
  misplaced: MisplacedPod,
  evictions: Evictions,
): Promise<Verdict> {
  const { caches, configuration } = leader;
  const { pod, architecture, images, facts } = misplaced;
  const now = await readMisplaced(leader, misplaced);
  if (now === undefined) return { kind: 'later', ms: cacheLagMs };
  const context = { ...contextOf(leader, pod.namespace, pod), facts };
  if (isOfPlacedTemplate(pod)) {
    const template = await daemonTemplateOf(pod, leader);
    if (typeof template === 'string') return later;
    const report = daemonVerdict(template, context, architecture);
    return report ? { kind: 'report', report } : later;
  }
  if (isDaemon(pod) || isPinned(pod)) {
    const report = pinnedVerdict(now, context, architecture);
    return report ? { kind: 'report', report } : later;
  }

  const replacement = replacementOf(now, context, architecture, caches.nodes.values());
  if (replacement === 'skipped') return { kind: 'skipped' };
  if (replacement === 'unsure') return later;
  if (replacement !== 'placed') return { kind: 'report', report: replacement };

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
