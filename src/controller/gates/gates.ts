/**
 * Gates: pods that wait because an image was not known at their creation. Each pod is a key, reconciled when
 * it appears or changes, when facts of its images arrive, and at times that follow from its age:
 *
 * 1. A pod that needs no decision any more (opted out, its namespace left out) loses its gate at once.
 * 2. Facts of its images come from memory, or from one lookup for all pods that need them (`lookups.ts`).
 * 3. Known: one patch sets the placement and removes the gate (`remove-gate.ts`). Not known: it waits.
 * 4. After `maxGateDuration` the fallback applies and the gate is removed, with an event. If a defect or a
 *    refusal prevents that, only the gate is removed.
 *
 * All state is in memory (`waiting.ts`). Each write is one complete patch, so a new leader finds nothing half
 * done. Waiting pods, and ungated pods that the webhook left pending, get events (`events.ts`).
 */
import { toConfirm } from '../../cluster/confirm-refusal.ts';
import type { FactsByImage } from '../../cluster/facts-of-pod.ts';
import { isCode, KubeError } from '../../kube/api/errors.ts';
import type { Pod } from '../../kube/api/objects.ts';
import { keyOf } from '../../kube/queue.ts';
import type { ChosenSide, PlacementDecision } from '../../placement/decision.ts';
import type { Rule } from '../../placement/rules/rules.ts';
import { carriesGate } from '../caches/waiting-pods.ts';
import type { Feature, Leading } from '../leadership/leading.ts';
import { createReconciler, type Reconciler, type ReconcileResult } from '../reconcile/reconciler.ts';
import {
  createPullability,
  decideWaiting,
  inputOf,
  policiesKnown,
  skippedOf,
  wantedOf,
  type WaitingInput,
} from './decide-waiting.ts';
import { describeRecorded, GateEvents, whyGated } from './events.ts';
import { IncompletePods } from './incomplete-pods.ts';
import { GateLookups, signatureOf } from './lookups.ts';
import { bindGateMetrics, type GateMeters, type WaitingReason } from './metrics.ts';
import { GateRemover, type Removal } from './remove-gate.ts';
import { mostMs, nextLookMs, WaitingPods, type WaitingPod } from './waiting.ts';

/** As long as memory gives a lookup. Facts that come later are found at the next look. */
const lookupMs = 15_000;
/** For the last lookup, when the time of a pod is over. */
const lastLookupMs = 1000;
/** A namespace as new as its pod comes by another watch. */
const namespacePatienceMs = 5000;
const namespacePauseMs = 250;
/** The first answer usually comes sooner, and a pod that waits no longer needs no event. */
const quietMs = 2000;
/** This long after its time, a pod that keeps changing loses its gate without a placement. */
const conflictsMs = 15_000;

/** The cache forgets a pod that is gone. If it does not, a proxy answered 404, and the pod still waits. */
const unlessForgotten: ReconcileResult = { requeueAfterMs: mostMs };

export const decideGatedPods: Feature = (leading) => new Gates(leading).run();

class Gates {
  readonly #leading: Leading;
  readonly #pods: WaitingPods;
  readonly #reconciler: Reconciler;
  readonly #lookups: GateLookups;
  readonly #remover: GateRemover;
  readonly #events: GateEvents;
  readonly #meters: GateMeters;
  readonly #incomplete: IncompletePods;
  readonly #withPullability: ReturnType<typeof createPullability>;

  constructor(leading: Leading) {
    this.#leading = leading;
    this.#pods = new WaitingPods(leading);
    this.#events = new GateEvents(leading);
    this.#meters = bindGateMetrics(leading.metrics, () => this.#pods.groups());
    this.#incomplete = new IncompletePods(leading);
    this.#withPullability = createPullability(leading);
    this.#reconciler = createReconciler({
      leading,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      workers: leading.configuration().gateWorkers,
      backOff: { firstMs: 250, mostMs },
    });
    this.#lookups = new GateLookups(leading, {
      onFacts: (key, facts, images) => {
        this.#pods.get(key)?.update({ answer: { images, facts } });
        this.#reconciler.add(key);
      },
      onTurn: (key) => this.#reconciler.add(key),
    });
    this.#remover = new GateRemover(leading, () => this.#meters.failed('conflict'));
  }

  async run(): Promise<void> {
    const { caches } = this.#leading;
    await policiesKnown(this.#leading);
    caches.waitingPods.onEach(({ namespace, name, object }) => {
      const key = `${namespace}/${name}`;
      if (object === undefined) this.#pods.forget(key);
      else this.#reconciler.add(key);
    });
    caches.namespaces.onEach(({ name, object, previous }) => {
      if (JSON.stringify(object) === JSON.stringify(previous)) return;
      for (const { pod } of caches.waitingPods.values(name)) this.#reconciler.add(keyOf(pod));
    });
    await this.#reconciler.run([...caches.waitingPods.values()].map(({ pod }) => keyOf(pod)));
    this.#lookups.stop();
    this.#meters.close();
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const [namespace = '', name = ''] = key.split('/');
    const cached = this.#leading.caches.waitingPods.get(namespace, name);
    if (cached === undefined) {
      this.#pods.forget(key);
      return undefined;
    }
    const waiting = this.#pods.of(key, cached.pod);
    const isGated = carriesGate(cached.pod);
    if (cached.pod.metadata?.deletionTimestamp !== undefined) return undefined;
    if (isGated ? waiting.reason === undefined : waiting.isReported || cached.rollout) return undefined;
    const pod = cached.isIncomplete ? await this.#incomplete.read(cached.pod, signal) : cached.pod;
    if (pod === undefined) return unlessForgotten;
    if (typeof pod === 'number') return { requeueAfterMs: pod };
    if (!isGated) {
      // Pending since its creation; the webhook cannot write events.
      if (waiting.report()) this.#events.noCommonArchitecture(pod, describeRecorded(pod));
      return undefined;
    }
    try {
      return await this.#decide(pod, waiting, signal);
    } catch (error) {
      if (signal.aborted || isCode(error, 'not-leading')) throw error;
      return await this.#afterFailure(error, pod, waiting, signal);
    }
  }

  async #decide(pod: Pod, waiting: WaitingPod, signal: AbortSignal): Promise<ReconcileResult> {
    const input = inputOf(pod, this.#leading);
    if (waiting.ageMs < namespacePatienceMs && !this.#leading.caches.namespaces.get('', input.namespace))
      return { requeueAfterMs: namespacePauseMs };
    const skipped = skippedOf(input);
    const expired = this.#isExpired(waiting);
    const facts = skipped ? new Map<never, never>() : this.#factsFor(input, waiting, expired);
    if (facts === undefined) {
      if (waiting.reason === 'new') waiting.update({ reason: 'lookup' });
      if (!expired && waiting.ageMs >= quietMs && waiting.reported === undefined)
        this.#report(pod, waiting, decideWaiting(input, this.#remembered(input), expired));
      // Facts arrive by themselves, unless the pod that started the lookup is gone.
      return expired ? undefined : this.#nextLook(waiting);
    }
    const looked = skipped ? input : await this.#withPullability(input, facts, expired);
    const first = skipped ?? decideWaiting(looked, facts, expired);
    const side = isToChoose(first) ? await this.#choose(pod, looked, expired) : undefined;
    const decision = side ? decideWaiting(looked, facts, expired, side) : first;
    if (decision.outcome === 'gated') {
      waiting.update({ reason: reasonOf(decision) });
      this.#report(pod, waiting, decision);
      return this.#nextLook(waiting);
    }
    if (decision.required?.length === 0 && !expired && this.#isToConfirm(input, waiting, facts))
      return this.#nextLook(waiting);
    const again = (now: Pod): PlacementDecision | undefined => {
      const { pullability } = looked;
      const changed = { ...inputOf(now, this.#leading), ...(pullability && { pullability }) };
      const next = skippedOf(changed) ?? decideWaiting(changed, facts, expired, side);
      return next.outcome === 'gated' || imagesOf(changed) !== imagesOf(input) ? undefined : next;
    };
    return this.#finish(waiting, await this.#remover.place(pod, decision, again, signal));
  }

  /** Expired pods take no part in a rollout. */
  async #choose(pod: Pod, { policy }: WaitingInput, expired: boolean): Promise<ChosenSide> {
    const { rollouts } = this.#leading;
    if (expired || policy.rollout === undefined) return 'Other';
    return await rollouts.choose(pod, policy.rollout);
  }

  #remembered(input: WaitingInput): FactsByImage {
    const found = this.#leading.factsOfPod({ ...wantedOf(input, 0), memoryOnly: true });
    if (!(found instanceof Promise)) return found;
    void found.catch(() => undefined);
    return new Map();
  }

  /** Records an event on why the pod waits, and again if that changes. */
  #report(pod: Pod, waiting: WaitingPod, decision: PlacementDecision): void {
    const why = whyGated(decision);
    if (decision.outcome !== 'gated' || waiting.reported === why) return;
    const until = this.#leading.serverNow() + this.#remainingMs(waiting);
    if (this.#events.gated(pod, decision, until)) waiting.update({ reported: why });
  }

  #factsFor(input: WaitingInput, waiting: WaitingPod, expired: boolean): FactsByImage | undefined {
    return (
      waiting.takeAnswer(imagesOf(input)) ??
      this.#lookups.find(keyOf(input.pod), wantedOf(input, expired ? lastLookupMs : lookupMs), expired)
    );
  }

  /**
   * A pod cannot lose requirements, so one more lookup confirms a decision that leaves it pending.
   * @returns whether the pod has to wait for that
   */
  #isToConfirm(input: WaitingInput, waiting: WaitingPod, facts: FactsByImage): boolean {
    const wanted = waiting.confirm() ? toConfirm(wantedOf(input, lookupMs), facts) : undefined;
    return wanted !== undefined && this.#lookups.find(keyOf(input.pod), wanted, true) === undefined;
  }

  /** Retries temporary failures. After the pod's time, a defect or a refusal removes only the gate. */
  async #afterFailure(
    error: unknown,
    pod: Pod,
    waiting: WaitingPod,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    if (error instanceof KubeError) {
      this.#meters.failed(isRefusal(error) ? 'refused' : 'unavailable');
      if (!this.#isExpired(waiting) || !this.#isLasting(error, waiting)) throw error;
      return this.#finish(waiting, await this.#remover.removeOnly(pod, error.message, signal));
    }
    this.#meters.failed('fault');
    this.#leading.log.error({ err: error, pod: keyOf(pod) }, 'a gated pod could not be decided');
    if (!this.#isExpired(waiting)) throw error;
    const why = 'archwright failed; see its log';
    return this.#finish(waiting, await this.#remover.removeOnly(pod, why, signal));
  }

  #finish(waiting: WaitingPod, removal: Removal): ReconcileResult {
    if (removal.kind === 'changed') return { requeueAfterMs: namespacePauseMs };
    if (removal.kind === 'gone') return unlessForgotten;
    waiting.ungated();
    if (removal.kind === 'gate-only') {
      this.#meters.removed('gate-only', waiting.ageMs);
      this.#events.placementFailed(removal.pod, removal.why);
    } else if (removal.kind === 'placed') this.#placed(waiting, removal.pod, removal.decision);
    return undefined;
  }

  #placed(waiting: WaitingPod, pod: Pod, decision: PlacementDecision): void {
    const { ageMs: waitedMs } = waiting;
    const { outcome, message, required, replaces } = decision;
    this.#meters.removed(outcome, waitedMs);
    if (outcome === 'fallback') this.#events.imageUnknown(pod, decision, waitedMs);
    if (outcome === 'pending' && waiting.report())
      this.#events.noCommonArchitecture(pod, message ?? describeRecorded(pod));
    const [before, now] = [replaces?.architectures, required];
    if (before?.length && now?.length && !now.some((name) => before.includes(name)))
      this.#events.contradiction(pod, before, now);
    this.#leading.log.debug({ pod: keyOf(pod), outcome, waitedMs }, 'a scheduling gate was removed');
  }

  /** Conflicts pass, but not all of them: an admission webhook may refuse a change with this status too. */
  #isLasting(error: KubeError, waiting: WaitingPod): boolean {
    return error.code === 'conflict' ? this.#remainingMs(waiting) <= -conflictsMs : isRefusal(error);
  }

  #isExpired(waiting: WaitingPod): boolean {
    return this.#remainingMs(waiting) <= 0;
  }

  #remainingMs({ ageMs }: WaitingPod): number {
    return this.#leading.configuration().maxGateDuration - ageMs;
  }

  #nextLook(waiting: WaitingPod): ReconcileResult {
    return { requeueAfterMs: Math.min(nextLookMs(waiting.ageMs, waiting.uid), this.#remainingMs(waiting)) };
  }
}

/** Whether everything is known but where a rollout puts the pod. */
function isToChoose({ outcome, reasons: [first] }: PlacementDecision): boolean {
  return outcome === 'gated' && first?.rule === ('rollout-choose' satisfies Rule);
}

function imagesOf(input: WaitingInput): string {
  return signatureOf(wantedOf(input, 0));
}

/**
 * Whether the API server understood the patch and refuses it. Other admission webhooks and policies choose
 * the status of their refusals; the API server's default is 400.
 */
function isRefusal({ code, temporary }: KubeError): boolean {
  return !temporary && code !== 'conflict' && code !== 'unauthorized';
}

function reasonOf({ images }: PlacementDecision): WaitingReason {
  const [first] = images.flatMap(({ unknown }) => (unknown === undefined ? [] : [unknown]));
  return (first ?? 'unknown') as WaitingReason;
}
