/**
 * Gates: pods that wait because an image was unknown at their creation. Each pod is a key, reconciled when it
 * appears or changes, when a failed lookup may be repeated, and at times that follow from its age:
 *
 * 1. A pod that needs no decision any more (opted out, its namespace left out) loses its gate.
 * 2. Otherwise a worker waits for the facts of its images until the next attempt. Pods with the same images share
 *    the lookup (`images/cache`). A thousand pods may wait at the same time, from any namespace.
 * 3. Known: one patch sets the placement and removes the gate (`remove-gate.ts`). Unknown: it keeps waiting.
 * 4. After `maxGateDuration` the fallback applies and the gate is removed, with an event. If a defect or a
 *    refusal prevents that, only the gate is removed.
 *
 * All state is in memory (`waiting.ts`). Each write is one complete patch, so a new leader finds nothing half
 * done. Waiting pods, and ungated pods that the webhook left pending, get events (`events.ts`).
 */
import { limited, unlessAborted } from '../../../async/wait.ts';
import { placementOf, type PlacementSources } from '../../../cluster/placement-of-pod.ts';
import { isCode, KubeError } from '../../../kube/api/errors.ts';
import type { Pod } from '../../../kube/api/objects.ts';
import { keyOf } from '../../../kube/queue.ts';
import { decide } from '../../../placement/decide.ts';
import type { PlacementDecision } from '../../../placement/decision.ts';
import { carriesGate } from '../../state/waiting-pods.ts';
import type { Enqueue, Feature, LeaderContext, ReconcileResult, Work } from '../../lead/feature.ts';
import {
  createWaitingSources,
  isToChoose,
  policiesKnown,
  reasonOf,
  retryMsOf,
  targetOf,
} from './decide-waiting.ts';
import { describeRecorded, GateEvents, whyGated } from './events.ts';
import { isRefusal, placePod, showSummary, ungatePod, type Removal } from './remove-gate.ts';
import {
  bindGateMetrics,
  createPodReader,
  gateMetrics,
  mostMs,
  nextAttemptMs,
  GatedPods,
  type GatedPod,
} from './waiting.ts';

/** Pods in work at the same time, most of which wait for lookups. One busy namespace has a third. */
const workers = 1024;
/** Time for the last attempt, when the time of a pod is over. */
const lastAttemptMs = 1000;
/** Other writers may change a pod just when it is decided, also long after its time: no replica may have led. */
const conflictPatienceMs = 5000;
/** An attempt ends within its time; a defect there must not hold a pod. */
const graceMs = 2000;
/** A namespace as new as its pod comes by another watch. */
const namespacePatienceMs = 5000;
const namespacePauseMs = 250;
/** The first answer usually comes sooner, and a pod that waits no longer needs no event. */
const quietMs = 2000;

/** The cache forgets a pod that is gone. If it does not, a proxy answered 404, and the pod still waits. */
const unlessForgotten: ReconcileResult = { requeueAfterMs: mostMs };

export const gates: Feature = {
  name: 'gates',
  metrics: gateMetrics,
  workers,
  backOff: { firstMs: 250, mostMs },
  ready: policiesKnown,
  start: (leader, enqueue) => new Gates(leader, enqueue),
};

class Gates implements Work {
  readonly #leader: LeaderContext;
  readonly #pods: GatedPods;
  readonly #events: GateEvents;
  readonly #meters: ReturnType<typeof bindGateMetrics>;
  readonly #readNow: ReturnType<typeof createPodReader>;
  readonly #sourcesOf: (isExpired: boolean) => PlacementSources;

  constructor(leader: LeaderContext, enqueue: Enqueue) {
    this.#leader = leader;
    this.#pods = new GatedPods(leader);
    this.#events = new GateEvents(leader);
    this.#meters = bindGateMetrics(leader.metrics, () => this.#pods.all());
    this.#readNow = createPodReader(leader);
    this.#sourcesOf = createWaitingSources(leader);
    const { waitingPods, namespaces } = leader.caches;
    waitingPods.onEach(({ namespace, name }) => enqueue(`${namespace}/${name}`));
    namespaces.onEach(({ name, object, previous }) => {
      if (JSON.stringify(object) === JSON.stringify(previous)) return;
      for (const { pod } of waitingPods.values(name)) enqueue(keyOf(pod));
    });
  }

  keys(): readonly string[] {
    return [...this.#leader.caches.waitingPods.values()].map(({ pod }) => keyOf(pod));
  }

  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const [namespace = '', name = ''] = key.split('/');
    const cached = this.#leader.caches.waitingPods.get(namespace, name);
    if (cached === undefined) {
      this.#pods.forget(key);
      return undefined;
    }
    const waiting = this.#pods.get(key, cached.pod);
    const isGated = carriesGate(cached.pod);
    if (cached.pod.metadata?.deletionTimestamp !== undefined) return undefined;
    if (isGated ? waiting.reason === undefined : waiting.isPendingReported || cached.rollout)
      return undefined;
    let { pod } = cached;
    if (cached.isIncomplete) {
      const read = await this.#readNow(pod, signal);
      if (read.kind === 'gone') return unlessForgotten;
      if (read.kind === 'later') return { requeueAfterMs: read.ms };
      ({ pod } = read);
    }
    if (!isGated) {
      waiting.reason = undefined;
      waiting.isPendingReported = true;
      // Pending since its creation; the webhook cannot write events.
      this.#events.noCommonArchitecture(pod, describeRecorded(pod));
      return undefined;
    }
    try {
      return await this.#decide(pod, waiting, signal);
    } catch (error) {
      if (signal.aborted || isCode(error, 'not-leading')) throw error;
      return await this.#afterFailure(error, pod, waiting, signal);
    }
  }

  async #decide(pod: Pod, waiting: GatedPod, signal: AbortSignal): Promise<ReconcileResult> {
    const { namespace = '' } = pod.metadata ?? {};
    if (waiting.ageMs < namespacePatienceMs && !this.#leader.caches.namespaces.get('', namespace))
      return { requeueAfterMs: namespacePauseMs };
    const isExpired = waiting.remainingMs <= 0;
    const sources = this.#sourcesOf(isExpired);
    const untilNextMs = Math.min(
      nextAttemptMs(waiting.ageMs, this.#leader.clock.random()),
      waiting.remainingMs,
    );
    const budgetMs = isExpired ? lastAttemptMs : untilNextMs;
    const nextAt = waiting.ageMs + budgetMs;
    if (waiting.reason === 'new') waiting.reason = 'lookup';
    const attempt = (within: AbortSignal) =>
      unlessAborted(placementOf(targetOf(pod, this.#leader), sources, { budgetMs }), within);
    const placed = await limited(budgetMs + graceMs, signal, attempt, this.#leader.clock.sleep);
    let { decision } = placed;
    const { policy } = placed.input;
    const { rollout } = policy;
    if (rollout && isToChoose(decision)) {
      // Expired pods take no part in a rollout.
      const newPods = isExpired ? 'Other' : await this.#leader.rollouts.choose(pod, rollout);
      decision = decide({ ...placed.input, policy: { ...policy, rollout: { ...rollout, newPods } } });
    }
    if (decision.outcome === 'gated') {
      waiting.conflictsSince = undefined;
      const reason = reasonOf(decision);
      waiting.reason = reason ?? waiting.reason;
      // A lookup that is repeated does not change why the pod waits.
      const isQuiet = waiting.ageMs < quietMs || waiting.reported !== undefined;
      if (reason !== undefined || !isQuiet) await this.#report(pod, waiting, decision, signal);
      return { requeueAfterMs: Math.min(nextAt - waiting.ageMs, retryMsOf(decision)) };
    }
    return this.#finish(waiting, await placePod(this.#leader.client, pod, decision, signal));
  }

  /** Says why the pod waits by an event and its annotation, and again if that changes. */
  async #report(
    pod: Pod,
    waiting: GatedPod,
    decision: PlacementDecision,
    signal: AbortSignal,
  ): Promise<void> {
    const why = whyGated(decision);
    if (waiting.reported === why) return;
    const until = this.#leader.serverNow() + waiting.remainingMs;
    if (!this.#events.gated(pod, decision, until)) return;
    waiting.reported = why;
    await showSummary(this.#leader.client, pod, decision, signal);
  }

  /** Retries temporary failures. After the pod's time, a defect or a refusal removes only the gate. */
  async #afterFailure(
    error: unknown,
    pod: Pod,
    waiting: GatedPod,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const isKube = error instanceof KubeError;
    const isRefused = isKube && isRefusal(error);
    const isConflict = isCode(error, 'conflict');
    this.#meters.failed(isRefused ? 'refused' : isConflict ? 'conflict' : isKube ? 'unavailable' : 'fault');
    if (isRefused) waiting.reason = 'refused';
    if (!isKube) this.#leader.log.error({ err: error, pod: keyOf(pod) }, 'a gated pod could not be decided');
    // Conflicts pass, but not all of them: an admission webhook may refuse a change with this status too.
    waiting.conflictsSince = isConflict ? (waiting.conflictsSince ?? waiting.ageMs) : undefined;
    const isLasting = isConflict
      ? waiting.ageMs - (waiting.conflictsSince ?? 0) >= conflictPatienceMs
      : !isKube || isRefused;
    if (waiting.remainingMs > 0 || !isLasting) throw error;
    const why = isKube ? error.message : 'archwright failed; see its log';
    try {
      return this.#finish(waiting, await ungatePod(this.#leader.client, pod, why, signal));
    } catch (cause) {
      if (cause instanceof KubeError && isRefusal(cause)) this.#events.gateStays(pod, cause.message);
      throw cause;
    }
  }

  #finish(waiting: GatedPod, removal: Removal): ReconcileResult {
    if (removal.kind === 'gone') return unlessForgotten;
    waiting.reason = undefined;
    if (removal.kind === 'gate-only') {
      this.#meters.removed('gate-only', waiting.ageMs);
      this.#events.placementFailed(removal.pod, removal.why);
      return undefined;
    }
    const { ageMs: waitedMs } = waiting;
    const { pod, decision } = removal;
    const { outcome, message, required, replaces } = decision;
    this.#meters.removed(outcome, waitedMs);
    if (outcome === 'fallback' || outcome === 'allowed-unknown')
      this.#events.imageUnknown(pod, decision, waitedMs);
    if (outcome === 'pending' && !waiting.isPendingReported)
      this.#events.noCommonArchitecture(pod, message ?? describeRecorded(pod));
    waiting.isPendingReported ||= outcome === 'pending';
    const [before, now] = [replaces?.architectures, required];
    if (before?.length && now?.length && !now.some((name) => before.includes(name)))
      this.#events.contradiction(pod, before, now);
    this.#leader.log.debug({ pod: keyOf(pod), outcome, waitedMs }, 'a scheduling gate was removed');
    return undefined;
  }
}
