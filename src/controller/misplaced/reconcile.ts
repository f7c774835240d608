/** What is done about one misplaced pod. */
import { KubeError } from '../../kube/api/errors.ts';
import type { Pod } from '../../kube/api/objects.ts';
import { trimRunningPod } from '../caches/running-pods.ts';
import { hasChosenNode } from '../scope/chosen-nodes.ts';
import type { RunningPod } from '../caches/caches.ts';
import type { Leading } from '../leadership/leading.ts';
import { daemonTemplateOf, isDaemon } from '../scope/daemon-set.ts';
import { createCauses, type Cause } from './causes.ts';
import { daemonVerdict } from './daemon.ts';
import { evict } from './evict.ts';
import { lossesLeft } from './job.ts';
import { alsoLack, imagesWithoutArchitecture } from './missing-architectures.ts';
import type { MisplacedCounts } from './metrics.ts';
import type { Misplaced, PassOptions } from './misplaced.ts';
import { createEvictions } from './evictions.ts';
import { replacementOf } from './replacement.ts';
import { isSuspect, type Suspects } from './suspects.ts';
import { createMisplacedEvents } from './events.ts';
import { workloadOf, type Workload } from '../scope/workload.ts';
import { paths } from '../../kube/api/paths.ts';

export interface MisplacedReconciler {
  /** @throws KubeError where nothing can be done about any pod now */
  move(misplaced: Misplaced): Promise<void>;
}

export interface MisplacedReconcilerOptions extends Required<Pick<PassOptions, 'sleep' | 'notes'>> {
  /** Hears of a pod that constrains its architecture itself: where it is is its own choice. */
  readonly leftAlone: (pod: RunningPod) => void;
}

/** Pods that wait for others of their workload. */
const forOthersMs = 15_000;
/** The cache knows of a change by then. */
const changedMs = 5_000;
/**
 * Between suspects' grace of 30 s and now, with room for clocks of several API servers that differ: what existed before
 * the first eviction is older, what came of it is younger.
 */
const marginMs = 15_000;
/** An API server that refuses so many in a row refuses all. */
const maxFailed = 5;

export function createMisplacedReconciler(
  leading: Leading,
  suspects: Suspects,
  counts: MisplacedCounts,
  { sleep, notes, leftAlone }: MisplacedReconcilerOptions,
): MisplacedReconciler {
  const { signal, client, caches, configuration, policies, serverNow, step, log } = leading;
  const causes = createCauses({ client, ...notes });
  const moves = createEvictions(leading);
  const telling = createMisplacedEvents(leading);
  let failed = 0;

  /** The pod as it is now, where it still is what it seemed to be. */
  async function read({ pod, architecture, images, facts }: Misplaced): Promise<Pod | undefined> {
    const path = paths.pods(pod.namespace, pod.name);
    try {
      const now = await client.get<Pod>(path, { signal });
      const trimmed = trimRunningPod(now, (value) => value);
      if (trimmed === undefined || trimmed.uid !== pod.uid || trimmed.node !== pod.node) return undefined;
      if (!isSuspect(trimmed)) return undefined;
      const still = imagesWithoutArchitecture(trimmed, architecture, facts);
      const isStill = still.some(
        (each) =>
          images.some(({ image, pulled }) => image === each.image && same(pulled, each.pulled)) ||
          alsoLack(each, trimmed.os, architecture, facts),
      );
      return isStill ? now : undefined;
    } catch (error) {
      if (error instanceof KubeError && error.code === 'not-found') return undefined;
      throw error;
    }
  }

  async function move(misplaced: Misplaced): Promise<void> {
    const { pod, architecture, images } = misplaced;
    const now = await read(misplaced);
    if (now === undefined) {
      suspects.later(pod, changedMs);
      return;
    }
    const { namespace } = pod;
    const namespaceLabels = caches.namespaces.get('', namespace)?.labels ?? {};
    const policy = policies.policyOf({ namespace, namespaceLabels, labels: pod.labels });
    const { facts } = misplaced;
    if (isDaemon(pod)) {
      const template = await daemonTemplateOf(pod, { client, signal });
      const input = { namespace, namespaceLabels, policy, facts: (image: string) => facts.get(image) };
      const verdict = typeof template === 'object' ? daemonVerdict(template, input, architecture) : undefined;
      if (verdict) tell(verdict, misplaced);
      suspects.later(pod);
      return;
    }
    const replacement = replacementOf({
      pod: now,
      namespace,
      namespaceLabels,
      policy,
      facts,
      architecture,
      nodes: caches.nodes.values(),
    });
    const { misplacedPods: mode } = configuration();
    if ('not' in replacement) {
      if (replacement.not === 'no-node' || replacement.not === 'no-architecture')
        tell(replacement.not, misplaced);
      if (replacement.not === 'left-alone') leftAlone(pod);
      suspects.later(pod);
      return;
    }
    const { nodes, selectors } = replacement;
    if (selectors && !(await hasChosenNode(nodes, selectors, { client, signal }))) {
      tell('no-node', misplaced);
      suspects.later(pod);
      return;
    }
    // Before the Job is read: one that is gone by now has been counted by then.
    const going = moves.going(pod.owner?.uid ?? '');
    const workload = pod.owner && (await workloadOf(pod.namespace, pod.owner, { client, signal }));
    if (workload === undefined || mode !== 'evict') {
      if (workload && mode === 'event') tell('told', misplaced, workload);
      suspects.later(pod);
      return;
    }
    const left = workload.job === undefined ? Number.POSITIVE_INFINITY : lossesLeft(workload.job, now);
    if (left - going <= 0) {
      if (left === 0) tell('last-try', misplaced, workload);
      suspects.later(pod, left === 0 ? undefined : forOthersMs);
      return;
    }
    const cause = { uid: workload.top.uid, digests: images.map(({ digest }) => digest), architecture };
    const since = await causes.since(cause, signal);
    if (since !== undefined && pod.createdAt >= since) {
      tell('again', misplaced, workload);
      suspects.later(pod);
      return;
    }
    if (!moves.hasRoom(pod, workload, since)) {
      suspects.later(pod, forOthersMs);
      return;
    }
    await carryOut(misplaced, now, workload, { cause, since });
  }

  async function carryOut(
    misplaced: Misplaced,
    asRead: Pod,
    workload: Workload,
    { cause, since }: { readonly cause: Cause; readonly since: number | undefined },
  ): Promise<void> {
    const { pod } = misplaced;
    const waitMs = moves.turn();
    if (waitMs > 0) await sleep(waitMs, signal);
    const now = waitMs > 0 ? await read(misplaced) : asRead;
    if (now === undefined) {
      suspects.later(pod, changedMs);
      return;
    }
    if (since === undefined) {
      await causes.add(cause, Math.floor((serverNow() - marginMs) / 1000) * 1000, signal);
      await step('misplaced/noted');
    }
    const eviction = await evict(now, { client, signal }).catch((error: unknown) => {
      moves.perhapsMoved(pod);
      throw error;
    });
    if (eviction.outcome === 'evicted') {
      failed = 0;
      moves.moved(pod);
      counts.moved.evicted.inc();
      telling.tell('evicted', misplaced, workload.top);
      await step('misplaced/evicted');
    }
    const isFirst = since === undefined;
    if (!('why' in eviction)) {
      suspects.later(pod, changedMs);
      if (isFirst && eviction.outcome === 'changed') await causes.takeBack(cause, signal);
      return;
    }
    const { outcome, why, stays } = eviction;
    counts.moved[outcome].inc();
    suspects.later(pod);
    if (!stays) moves.perhapsMoved(pod);
    // What is made while the first one is refused, as by a budget, is no successor of anything.
    else if (isFirst) await causes.takeBack(cause, signal);
    if (outcome === 'held') telling.tell('held', misplaced, workload.top, why);
    else log.warn({ namespace: pod.namespace, pod: pod.name, why }, 'an eviction failed');
    failed = outcome === 'failed' ? failed + 1 : 0;
    if (failed < maxFailed) return;
    failed = 0;
    throw new Error(`the API server refuses evictions: ${why}`);
  }

  function tell(
    told: 'told' | 'again' | 'no-node' | 'no-architecture' | 'last-try' | 'unplaced',
    misplaced: Misplaced,
    workload?: Workload,
  ): void {
    const why =
      told === 'no-node'
        ? [...new Set(misplaced.images.flatMap((each) => each.architectures))].join(', ')
        : '';
    if (telling.tell(told, misplaced, workload?.top, why)) counts.moved[told].inc();
  }

  return { move };
}

function same(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((each, index) => each === b[index]);
}
