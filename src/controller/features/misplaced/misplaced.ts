/**
 * Misplaced pods: not ready, on a node with an architecture that their images lack. They were created without
 * the webhook, or a tag was pushed again without an architecture. Their owners never replace them. A run:
 *
 * 1. `suspects.ts`: pods that had time to become ready but are not, with an owner that would replace them.
 * 2. `misplaced-pod.ts`: which of their images certainly cannot run on the node.
 * 3. `verdict.ts`, one pod after the other: whether its successor would be placed elsewhere, its Job would fail
 *    by the eviction (`job.ts`), or pods of the workload were evicted for the same cause or are too many
 *    (`evictions.ts`).
 * 4. `evictions.ts`: the eviction, once another lookup confirms it. `events.ts`: only events for `misplacedPods = "event"` and DaemonSets.
 */
import { concurrently } from '../../../async/concurrently.ts';
import { inTurn } from '../../../async/fair-queue.ts';
import { KubeError } from '../../../kube/api/errors.ts';
import { counts, type Gauge } from '../../../telemetry/metrics.ts';
import type { RunningPod } from '../../state/cached.ts';
import type { Feature, LeaderContext } from '../../lead/feature.ts';
import { isOfPlacedTemplate } from '../../pods/workload.ts';
import { skippedPods } from '../../pods/skipped-pods.ts';
import { createMisplacedEvents, misplacedPodsHandled, misplacedPodsNow, outcomes } from './events.ts';
import { Evictions } from './evictions.ts';
import { isConfirmed, misplacedPodOf, readMisplaced, type MisplacedPod } from './misplaced-pod.ts';
import { Suspects } from './suspects.ts';
import { cacheLagMs, verdictOf, type Verdict } from './verdict.ts';

const intervalMs = 5_000;
const factsWorkers = 8;
/** Limits of one run, for current data. Namespaces take turns; the next run takes what is left. */
const most = { checksMs: 30_000, handlingMs: 60_000 };
/** No namespace has such a name. */
const paceOwner = 'misplaced pods';
/** As often as rollouts: an owner that does not ask for a while gives up its share. */
const askAgainMs = 5_000;

type EvictVerdict = Extract<Verdict, { kind: 'evict' }>;

export const misplacedPods: Feature = {
  name: 'misplaced-pods',
  metrics: [misplacedPodsNow, misplacedPodsHandled],
  inRounds: true,
  start: (leader) => {
    const work = new MisplacedReconciler(leader);
    return {
      keys: () => ['all'],
      reconcile: async () => ({ requeueAfterMs: (await work.reconcile()) ? 0 : intervalMs }),
    };
  },
};

export class MisplacedReconciler {
  readonly #leader: LeaderContext;
  readonly #suspects: Suspects;
  readonly #misplacedNow: Gauge;
  readonly #handled: (outcome: (typeof outcomes)[number]) => void;
  readonly #recordEvent: ReturnType<typeof createMisplacedEvents>;
  readonly #evictions: Evictions;

  constructor(leader: LeaderContext) {
    this.#leader = leader;
    this.#suspects = new Suspects(leader);
    this.#misplacedNow = leader.metrics.gauge(misplacedPodsNow);
    this.#handled = counts(leader.metrics, misplacedPodsHandled, 'outcome', outcomes);
    this.#recordEvent = createMisplacedEvents(leader);
    this.#evictions = new Evictions(leader);
  }

  /** @returns whether more is due at once. @throws KubeError */
  async reconcile(): Promise<boolean> {
    const { caches, configuration } = this.#leader;
    if (configuration().misplacedPods === 'off') {
      this.#misplacedNow.set(0);
      return false;
    }
    const due = this.#suspects.due(caches.runningPods.values());
    const { misplaced, areChecked } = await this.#check(due);
    this.#misplacedNow.set(this.#suspects.misplaced);
    const areHandled = await this.#handleAll(misplaced);
    this.#misplacedNow.set(this.#suspects.misplaced);
    return !areChecked || !areHandled;
  }

  /** `areChecked`: whether there was time for all. */
  async #check(due: readonly RunningPod[]) {
    const { signal, clock } = this.#leader;
    const isSkipped = skippedPods(this.#leader);
    const misplaced: MisplacedPod[] = [];
    const until = clock.monotonic() + most.checksMs;
    let areChecked = true;
    await concurrently(
      inTurn(due, ({ namespace }) => [namespace]),
      factsWorkers,
      async (pod) => {
        signal.throwIfAborted();
        areChecked &&= clock.monotonic() < until;
        if (!areChecked) return;
        // For a pod of a DaemonSet, the template decides.
        const found =
          !isOfPlacedTemplate(pod) && isSkipped(pod) ? undefined : await misplacedPodOf(this.#leader, pod);
        this.#suspects.mark(pod, found !== undefined);
        if (found) misplaced.push(found);
        else this.#suspects.later(pod);
      },
    );
    return { misplaced, areChecked };
  }

  /** @returns whether there was time for all */
  async #handleAll(misplaced: readonly MisplacedPod[]): Promise<boolean> {
    const { clock } = this.#leader;
    const until = clock.monotonic() + most.handlingMs;
    for (const each of inTurn(misplaced, ({ pod }) => [pod.namespace])) {
      if (clock.monotonic() >= until) return false;
      await this.#handle(each);
    }
    return true;
  }

  /** An error of one pod, for example of its own selector, must not stop the others. */
  async #handle(misplaced: MisplacedPod): Promise<void> {
    const { signal, log } = this.#leader;
    try {
      const verdict = await verdictOf(this.#leader, misplaced, this.#evictions);
      await this.#carryOut(misplaced, verdict);
    } catch (error) {
      if (!(error instanceof KubeError) || error.temporary || signal.aborted) throw error;
      const { namespace, name } = misplaced.pod;
      log.warn({ namespace, pod: name, error: error.message }, 'a misplaced pod could not be evicted');
      this.#suspects.later(misplaced.pod);
    }
  }

  async #carryOut(misplaced: MisplacedPod, verdict: Verdict): Promise<void> {
    const { pod } = misplaced;
    if (verdict.kind === 'evict') return await this.#evictInTurn(misplaced, verdict);
    if (verdict.kind === 'skipped') this.#suspects.mark(pod, false);
    if (verdict.kind === 'report') {
      const { report, workload } = verdict;
      if (this.#recordEvent(report, misplaced, workload?.top)) this.#handled(report);
    }
    this.#suspects.later(pod, verdict.kind === 'later' ? verdict.ms : undefined);
  }

  /** Waits for the rate limit, then confirms the facts and reads the pod again. */
  async #evictInTurn(misplaced: MisplacedPod, { workload, cause }: EvictVerdict): Promise<void> {
    const { signal, clock, evict, log, serverNow } = this.#leader;
    const { pod } = misplaced;
    const read = async () =>
      (await isConfirmed(this.#leader, misplaced)) ? await readMisplaced(this.#leader, misplaced) : undefined;
    // Before the eviction, so that no successor is older.
    let at = serverNow();
    let eviction = await evict(paceOwner, read);
    while (eviction.outcome === 'later') {
      await clock.sleep(Math.min(eviction.ms, askAgainMs), signal);
      at = serverNow();
      eviction = await evict(paceOwner, read);
    }
    const { outcome } = eviction;
    this.#suspects.later(pod, outcome === 'evicted' ? cacheLagMs : undefined);
    if (outcome === 'changed') return;
    this.#handled(outcome);
    if (!('why' in eviction)) {
      this.#evictions.add(pod, cause, at);
      this.#recordEvent('evicted', misplaced, workload.top);
    } else if (outcome === 'held') this.#recordEvent('held', misplaced, workload.top, eviction.why);
    else log.warn({ namespace: pod.namespace, pod: pod.name, why: eviction.why }, 'an eviction failed');
  }
}
