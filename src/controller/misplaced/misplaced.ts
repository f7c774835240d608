/**
 * Misplaced pods: not ready, on a node whose architecture their images lack, because they were created while the webhook
 * was away, or before it came, or because a tag was pushed again without an architecture. Their owner would never replace
 * them by itself: to it, they are there. In each pass:
 *
 * 1. `suspects.ts`: pods that are not ready although they had time, and have an owner that would make another one.
 * 2. `lacking.ts`: which of their images surely cannot run on the node. What is not certain is looked at again later.
 * 3. `mover.ts`, one after the other: the pod as it is now; whether its successor would be placed elsewhere
 *    (`replacement.ts`); whether a Job would end by it (`job.ts`); whether the workload was moved for the same cause before
 *    (`causes.ts`); how many of it are on the move (`moves.ts`, `share.ts`); then `evict.ts`. `telling.ts` has the events.
 *
 * Under `misplacedPods = "event"` the events are all there is, and of DaemonSets always (`daemon.ts`).
 */
import { serviceAccountOf } from '../../credentials/service-account.ts';
import type { FactsByImage } from '../../cluster/facts-of-pod.ts';
import { concurrently } from '../../async/concurrently.ts';
import { KubeError } from '../../kube/api/errors.ts';
import { wait } from '../../async/wait.ts';
import { isArchitecture } from '../../names/architecture.ts';
import type { ImageUse } from '../../placement/pod/images.ts';
import type { RunningPod } from '../caches/caches.ts';
import type { Feature, Leading } from '../leadership/leading.ts';
import { createSkippedPods } from '../scope/skipped-pods.ts';
import { isDaemon } from '../scope/daemon-set.ts';
import { createPasses } from '../reconcile/passes.ts';
import {
  alsoLack,
  imagesWithoutArchitecture,
  useOf,
  usesOf,
  type ImageWithoutArchitecture,
} from './missing-architectures.ts';
import { misplacedCounts } from './metrics.ts';
import { createMisplacedReconciler } from './reconcile.ts';
import { createSuspects, isSuspect, type Suspects } from './suspects.ts';
import type { Found } from './events.ts';

export interface MisplacedPodsOptions {
  /** Waits; injected by tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random?: () => number;
}

const passMs = 5_000;
/** Nobody waits for the answer. */
const factsBudgetMs = 5_000;
const factsWorkers = 8;
/** What a pass looks at and moves at most, so that it works on what is true now. */
const most = { looked: 200, moved: 20 };

/** A misplaced pod, with what is known of its images. */
export interface Misplaced extends Found {
  readonly facts: FactsByImage;
}

/** Makes the feature. */
export function misplacedPods(options: MisplacedPodsOptions = {}): Feature {
  return async (leading) => {
    const { signal, clock, caches, log, serverNow } = leading;
    const { namespace, movedPodsName: name } = leading.configuration();
    if (namespace === undefined) {
      log.warn('misplaced pods are not moved: the namespace of archwright is not known');
      return;
    }
    await caches.ready(signal).catch(() => undefined);
    const suspects = createSuspects(clock, serverNow);
    const pass = createPass(leading, suspects, { ...options, notes: { namespace, name } });
    const passes = createPasses({
      ...options,
      signal,
      clock,
      onFailure: (problem) => log.warn({ problem }, 'misplaced pods could not be moved; trying again'),
    });
    await passes.run(async () => ({ wrote: false, nextMs: (await pass()) ? 0 : passMs }));
    // The next leader counts; two replicas must not both show the same pods.
    misplacedCounts(leading.metrics).pods.set(0);
  };
}

export interface PassOptions extends MisplacedPodsOptions {
  /** The ConfigMap of `causes.ts`. */
  readonly notes: { readonly namespace: string; readonly name: string };
}

/**
 * Makes one pass.
 * @returns (of the pass) whether there is more to do at once
 */
export function createPass(
  leading: Leading,
  suspects: Suspects,
  { sleep = wait, notes }: PassOptions,
): () => Promise<boolean> {
  const { signal, caches, configuration, metrics, log } = leading;
  const counts = misplacedCounts(metrics);
  const mover = createMisplacedReconciler(leading, suspects, counts, {
    sleep,
    notes,
    leftAlone: ({ uid }) => void known.delete(uid),
  });
  const leftAlone = createSkippedPods(leading);
  /** Pods found misplaced, by uid. */
  let known = new Set<string>();

  async function lookAt(pod: RunningPod): Promise<Misplaced | undefined> {
    const architecture = caches.nodes.get('', pod.node)?.architecture;
    if (architecture === undefined || !isArchitecture(architecture)) return undefined;
    const facts = await factsOf(pod, usesOf(pod));
    const images = imagesWithoutArchitecture(pod, architecture, facts);
    const sure: ImageWithoutArchitecture[] = [];
    for (const image of images) {
      const pulled = image.pulled.length === 0 ? facts : await factsOf(pod, image.pulled.map(useOf));
      if (alsoLack(image, pod.os, architecture, pulled)) sure.push(image);
    }
    return sure.length === 0 ? undefined : { pod, architecture, images: sure, facts };
  }

  async function factsOf(pod: RunningPod, uses: readonly ImageUse[]): Promise<FactsByImage> {
    return leading.factsOfPod({
      uses,
      namespace: pod.namespace,
      pullSecrets: { names: pod.pullSecrets },
      serviceAccount: serviceAccountOf(pod.namespace, pod.serviceAccountName),
      budgetMs: factsBudgetMs,
    });
  }

  /** What is refused because of one pod, such as a selector of its own, must not keep the others where they cannot run. */
  async function move(misplaced: Misplaced): Promise<void> {
    try {
      await mover.move(misplaced);
    } catch (error) {
      if (!(error instanceof KubeError) || error.temporary || signal.aborted) throw error;
      const { pod } = misplaced;
      log.warn(
        { namespace: pod.namespace, pod: pod.name, error: error.message },
        'a misplaced pod could not be moved',
      );
      suspects.later(pod);
    }
  }

  return async () => {
    if (configuration().misplacedPods === 'off') {
      counts.pods.set(0);
      return false;
    }
    const due = suspects.due(caches.runningPods.values());
    const isLeftAlone = due.length > 0 ? await leftAlone() : () => true;
    const looked = await concurrently(due.slice(0, most.looked), factsWorkers, async (pod) => {
      signal.throwIfAborted();
      // The template of a DaemonSet is looked at for itself.
      const found = !isDaemon(pod) && isLeftAlone(pod) ? undefined : await lookAt(pod);
      if (found === undefined) {
        known.delete(pod.uid);
        suspects.later(pod);
      } else known.add(pod.uid);
      return found;
    });
    const alive = new Set([...caches.runningPods.values()].filter(isSuspect).map(({ uid }) => uid));
    known = new Set([...known].filter((uid) => alive.has(uid)));
    counts.pods.set(known.size);
    const misplaced = looked.filter((each) => each !== undefined);
    for (const each of misplaced.slice(0, most.moved)) await move(each);
    counts.pods.set(known.size);
    return due.length > most.looked || misplaced.length > most.moved;
  };
}
