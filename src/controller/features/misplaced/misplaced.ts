/**
 * Misplaced pods: not ready, on a node with an architecture that their images lack. They were created without
 * the webhook, or a tag was pushed again without an architecture. Their owners never replace them. Each pod is
 * a key, reconciled when it becomes a suspect (not ready, with an owner that would replace it) and in pauses:
 *
 * 1. `misplaced-pod.ts`: which of its images certainly cannot run on the node, if it had time to become ready.
 * 2. `verdict.ts`, one pod after the other: whether its successor would be placed elsewhere, its Job would fail
 *    by the eviction, or pods of the workload were evicted for the same cause or are too many
 *    (`evictions.ts`).
 * 3. The eviction, once another lookup confirms it. `events.ts`: only events for `misplacedPods = "event"` and DaemonSets.
 */
import { backOffMs } from '../../../async/clock.ts';
import { KubeError } from '../../../kube/api/errors.ts';
import type { Pod } from '../../../kube/api/objects.ts';
import { counts } from '../../../telemetry/metrics.ts';
import type { RunningPod } from '../../state/cached.ts';
import type { Feature, LeaderContext, ReconcileResult, Work } from '../../lead/feature.ts';
import { createMisplacedEvents, misplacedPodsHandled, misplacedPodsNow, outcomes } from './events.ts';
import { Evictions } from './evictions.ts';
import {
  isConfirmed,
  isSkipped,
  isSuspect,
  misplacedPodOf,
  readMisplaced,
  type MisplacedPod,
} from './misplaced-pod.ts';
import { cacheLagMs, verdictOf, type EvictionVerdict } from './verdict.ts';

/** Pods whose images are looked up at the same time. */
const workers = 8;
/** How long a pod may take to become ready, for the first time or again. */
const graceMs = 30_000;
/** The pause between checks: facts may come late, but a crash loop must not cost a request every few seconds. */
const pause = { firstMs: 15_000, mostMs: 10 * 60_000 };
/** No namespace has such a name. */
const paceOwner = 'misplaced pods';
/** The same as for rollouts: an owner that does not ask for a while gives up its share. */
const askAgainMs = 5_000;

interface Suspect {
  readonly uid: string;
  /** Monotonic time of the next check, milliseconds. */
  nextAt: number;
  pauses: number;
  isMisplaced: boolean;
}

export const misplacedPods: Feature = {
  name: 'misplaced-pods',
  metrics: [misplacedPodsNow, misplacedPodsHandled],
  workers,
  start: (leader, enqueue) => {
    leader.caches.runningPods.onEach(({ namespace, name, object, previous }) => {
      if ([object, previous].some((pod) => pod && isSuspect(pod))) enqueue(`${namespace}/${name}`);
    });
    return new MisplacedPods(leader);
  },
};

export class MisplacedPods implements Work {
  readonly #leader: LeaderContext;
  readonly #suspects = new Map<string, Suspect>();
  readonly #handled: (outcome: (typeof outcomes)[number]) => void;
  readonly #recordEvent: ReturnType<typeof createMisplacedEvents>;
  readonly #evictions: Evictions;
  /** Ends when the verdict about the last pod is carried out. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(leader: LeaderContext) {
    const { metrics } = leader;
    this.#leader = leader;
    this.#handled = counts(metrics, misplacedPodsHandled, 'outcome', outcomes);
    this.#recordEvent = createMisplacedEvents(leader);
    this.#evictions = new Evictions(leader);
    const now = metrics.gauge(misplacedPodsNow);
    metrics.beforeScrape(() => {
      const isOff = leader.configuration().misplacedPods === 'off';
      now.set(isOff ? 0 : [...this.#suspects.values()].filter(({ isMisplaced }) => isMisplaced).length);
    });
  }

  keys(): readonly string[] {
    const suspects = [...this.#leader.caches.runningPods.values()].filter(isSuspect);
    return suspects.map(({ namespace, name }) => `${namespace}/${name}`);
  }

  async reconcile(key: string): Promise<ReconcileResult> {
    const { caches, clock, serverNow, configuration } = this.#leader;
    const [namespace = '', name = ''] = key.split('/');
    const pod = caches.runningPods.get(namespace, name);
    if (pod === undefined || !isSuspect(pod)) {
      this.#suspects.delete(key);
      return undefined;
    }
    const now = clock.monotonic();
    const first = { uid: pod.uid, nextAt: now + graceMs, pauses: 0, isMisplaced: false };
    const known = this.#suspects.get(key);
    const suspect: Suspect = known?.uid === pod.uid ? known : first;
    this.#suspects.set(key, suspect);
    const waitMs = Math.max(suspect.nextAt - now, pod.createdAt + graceMs - serverNow());
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    if (configuration().misplacedPods === 'off') return { requeueAfterMs: pause.firstMs };
    try {
      const ms = (await this.#check(pod, suspect)) ?? backOffMs(pause, (suspect.pauses += 1));
      suspect.nextAt = clock.monotonic() + ms;
      return { requeueAfterMs: ms };
    } catch (error) {
      // A refusal, for example of its owner's path, comes again each time.
      if (error instanceof KubeError && !error.temporary)
        suspect.nextAt = clock.monotonic() + backOffMs(pause, (suspect.pauses += 1));
      throw error;
    }
  }

  /** @returns milliseconds until the next check; `undefined`: after the usual pause. @throws KubeError */
  async #check(pod: RunningPod, suspect: Suspect): Promise<number | undefined> {
    const leader = this.#leader;
    const misplaced = isSkipped(leader, pod) ? undefined : await misplacedPodOf(leader, pod);
    suspect.isMisplaced = misplaced !== undefined;
    if (misplaced === undefined) return undefined;
    const handled = this.#turn.then(() => this.#handle(misplaced, suspect));
    this.#turn = handled.catch(() => undefined);
    return await handled;
  }

  async #handle(misplaced: MisplacedPod, suspect: Suspect): Promise<number | undefined> {
    const verdict = await verdictOf(this.#leader, misplaced, this.#evictions);
    if (verdict.kind === 'evict') return await this.#evictInTurn(misplaced, verdict);
    if (verdict.kind === 'skipped') suspect.isMisplaced = false;
    if (verdict.kind === 'report') {
      const { report, workload } = verdict;
      if (this.#recordEvent(report, misplaced, workload?.top)) this.#handled(report);
    }
    return verdict.kind === 'later' ? verdict.ms : undefined;
  }

  /** Waits for the rate limit. Then pods may still be evicted, facts are confirmed, and the pod is read again. */
  async #evictInTurn(
    misplaced: MisplacedPod,
    { workload, cause }: Extract<EvictionVerdict, { kind: 'evict' }>,
  ): Promise<number | undefined> {
    const { signal, clock, evict, log, serverNow, configuration } = this.#leader;
    const { pod } = misplaced;
    const read = async (): Promise<Pod | undefined> => {
      if (configuration().misplacedPods !== 'evict') return undefined;
      const isSure = await isConfirmed(this.#leader, misplaced);
      return isSure ? await readMisplaced(this.#leader, misplaced) : undefined;
    };
    // Before the eviction, so that no successor is older.
    let at = serverNow();
    let eviction = await evict(paceOwner, read);
    while (eviction.outcome === 'later') {
      await clock.sleep(Math.min(eviction.ms, askAgainMs), signal);
      at = serverNow();
      eviction = await evict(paceOwner, read);
    }
    const { outcome } = eviction;
    if (outcome === 'changed') return undefined;
    this.#handled(outcome);
    if (!('why' in eviction)) {
      this.#evictions.add(pod, cause, at);
      this.#recordEvent('evicted', misplaced, workload.top);
      return cacheLagMs;
    }
    if (outcome === 'held') this.#recordEvent('held', misplaced, workload.top, eviction.why);
    else log.warn({ namespace: pod.namespace, pod: pod.name, why: eviction.why }, 'an eviction failed');
    return undefined;
  }
}
