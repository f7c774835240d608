/**
 * Gates: pods that wait because an image was not known at their creation. Each is a key of a work queue, worked on when it
 * appears or changes, when an answer on its images is there, and at times that follow from its age (`schedule.ts`):
 *
 * 1. A pod that needs no decision any more (opted out, its namespace left out) loses its gate at once.
 * 2. What is known of its images is looked up; what is not is asked for once for all pods that want it (`asking.ts`).
 * 3. Known: one patch sets the placement and takes the gate away (`open-gate.ts`). Not known: it waits for the next look.
 * 4. After `maxGateDuration` the fallback applies and the gate goes, with an event. If even that fails because of a defect
 *    or a refusal, the gate goes alone.
 *
 * Nothing of this is kept anywhere but in memory (`waiting.ts`), and each write is one patch that stands for itself: a
 * leader that comes or goes at any moment leaves nothing half done. Pods without our gate that the webhook made pending are
 * told about (`telling.ts`).
 */
import { toConfirm } from '../../cluster/confirm-refusal.ts';
import type { FactsByImage } from '../../cluster/facts-of-pod.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { Pod } from '../../kube/api/objects.ts';
import type { PlacementDecision } from '../../placement/decision.ts';
import { carriesGate } from '../caches/waiting-pods.ts';
import type { Feature, Leading } from '../leadership/leading.ts';
import { createReconciler, type ReconcileResult } from '../reconcile/reconciler.ts';
import { createGateLookups, signatureOf } from './lookups.ts';
import { decideWaiting, inputOf, skippedOf, wantedOf, type WaitingInput } from './decide-waiting.ts';
import { bindGateMetrics } from './gauges.ts';
import type { WaitingReason } from './metrics.ts';
import { createNodeCounts } from './node-counts.ts';
import { createOpening, type Opened } from './remove-gate.ts';
import { policiesKnown } from './policies-known.ts';
import { createPullability } from './pullability.ts';
import { mostMs, nextLookMs } from './schedule.ts';
import { createGateEvents, describeRecorded } from './events.ts';
import { createWaitingPods, type Waiting } from './waiting.ts';

export interface GatesOptions {
  readonly maxOpenQuestions?: number;
}

/** As long as memory gives a question; whoever answers later is heard at the next look. */
const askMs = 15_000;
/** When the time of a pod is over, what is known has to do. */
const lastAskMs = 1000;
/** A namespace as new as its pod comes by another watch. */
const namespacePatienceMs = 5000;
const namespacePauseMs = 250;
/** So long after the end of its time a pod that is changed again and again loses its gate without a placement. */
const conflictsMs = 15_000;

/** Works while this replica leads. */
export const openGates: Feature = (leading) => runGates(leading);

/** The same, with what tests inject. */
export async function runGates(leading: Leading, options: GatesOptions = {}): Promise<void> {
  const { caches, client, clock, log, policies, factsOfPod } = leading;
  const waiting = createWaitingPods({ clock, serverNow: leading.serverNow });
  const telling = createGateEvents(leading.events);
  const meters = bindGateMetrics(leading.metrics, waiting);
  const counts = createNodeCounts(caches.nodes);
  const nodes = createPullability(leading);
  const opening = createOpening({
    client,
    nodesOf: (architecture) => counts.of(architecture),
    onConflict: () => meters.failed('conflict'),
    step: leading.step,
  });
  const queue = createReconciler({
    leading,
    reconcile: work,
    workers: leading.configuration().gateWorkers,
    backOff: { firstMs: 250, mostMs },
  });
  const asking = createGateLookups({
    factsOfPod,
    answered: (key, facts, images) => {
      const known = waiting.get(key);
      if (known === undefined) return;
      known.answer = { images, facts };
      queue.add(key);
    },
    turn: (key) => queue.add(key),
    log,
    startTimer: clock.timer,
    ...(options.maxOpenQuestions !== undefined && { maxOpen: options.maxOpenQuestions }),
  });

  function podOf(key: string): Pod | undefined {
    const [namespace = '', name = ''] = key.split('/');
    return caches.waitingPods.get(namespace, name)?.pod;
  }

  async function work(key: string, stopping: AbortSignal): Promise<ReconcileResult> {
    const pod = podOf(key);
    if (pod === undefined) {
      waiting.forget(key);
      return undefined;
    }
    const known = waiting.of(key, pod);
    if (pod.metadata?.deletionTimestamp !== undefined) return undefined;
    if (!carriesGate(pod)) tellPending(pod, known);
    else if (!known.opened) await lookAt(key, pod, known, stopping);
    return undefined;
  }

  /** Its images shared no architecture when it was created; the webhook can record no events. */
  function tellPending(pod: Pod, known: Waiting): void {
    known.opened = true;
    if (known.told) return;
    known.told = true;
    telling.noCommonArchitecture(pod, describeRecorded(pod));
  }

  async function lookAt(key: string, pod: Pod, known: Waiting, stopping: AbortSignal): Promise<void> {
    try {
      await decideAndOpen(key, pod, known, stopping);
    } catch (error) {
      if (stopping.aborted || (error instanceof KubeError && error.code === 'not-leading')) throw error;
      const isFault = !(error instanceof KubeError);
      meters.failed(isFault ? 'fault' : isRefusal(error) ? 'refused' : 'unavailable');
      if (isFault) log.error({ err: error, pod: key }, 'a gated pod could not be decided');
      // What passes by itself is tried again as it is; a defect or a refusal would hold the pod for ever.
      if (!isExpired(known) || !(isFault || isLasting(error, known))) throw error;
      const why = isFault ? 'archwright failed; its log says how' : error.message;
      finish(known, await opening.openOnly(pod, why, stopping));
    }
  }

  async function decideAndOpen(key: string, pod: Pod, known: Waiting, stopping: AbortSignal): Promise<void> {
    const input = inputOf(pod, caches, policies);
    if (waiting.ageMs(known) < namespacePatienceMs && !caches.namespaces.get('', input.namespace)) {
      queue.add(key, namespacePauseMs);
      return;
    }
    const skipped = skippedOf(input);
    const expired = isExpired(known);
    const facts = skipped ? new Map<never, never>() : factsFor(key, input, known, expired);
    if (facts === undefined) {
      if (known.reason === 'new') known.reason = 'asking';
      // An answer comes by itself, but for one that was asked for by a pod that has gone, and the end of the time.
      if (!expired) lookLater(key, known);
      return;
    }
    const looked = skipped ? input : await nodes.wherePullable(input, facts, expired);
    const decision = skipped ?? decideWaiting(looked, facts, expired);
    if (decision.outcome === 'gated') {
      known.reason = reasonOf(decision);
      lookLater(key, known);
      return;
    }
    if (decision.required?.length === 0 && !expired && isAskedAgain(key, input, known, facts)) return;
    const again = (now: Pod): PlacementDecision | undefined => {
      const { pullability } = looked;
      const changed = { ...inputOf(now, caches, policies), ...(pullability && { pullability }) };
      const next = skippedOf(changed) ?? decideWaiting(changed, facts, expired);
      return next.outcome === 'gated' || imagesOf(changed) !== imagesOf(input) ? undefined : next;
    };
    const opened = await opening.open(pod, decision, again, stopping);
    if (opened.kind === 'changed') queue.add(key, namespacePauseMs);
    finish(known, opened);
  }

  /** An answer is used once, and only for the images that it was asked for. */
  function factsFor(
    key: string,
    input: WaitingInput,
    known: Waiting,
    expired: boolean,
  ): FactsByImage | undefined {
    const { answer } = known;
    known.answer = undefined;
    if (answer?.images === imagesOf(input)) return answer.facts;
    return asking.ask(key, wantedOf(input, expired ? lastAskMs : askMs), expired);
  }

  /**
   * What a pod is made to pend for can never be taken from it, so it is made sure first, once. The answer is in memory then.
   * @returns true where the pod has to wait for that
   */
  function isAskedAgain(key: string, input: WaitingInput, known: Waiting, facts: FactsByImage): boolean {
    const wanted = known.confirmed ? undefined : toConfirm(wantedOf(input, askMs), facts);
    known.confirmed = true;
    if (wanted === undefined || asking.ask(key, wanted, true) !== undefined) return false;
    lookLater(key, known);
    return true;
  }

  function imagesOf(input: WaitingInput): string {
    return signatureOf(wantedOf(input, 0));
  }

  function finish(known: Waiting, opened: Opened): void {
    if (opened.kind === 'changed') return;
    known.opened = true;
    if (opened.kind === 'gone') return;
    const waitedMs = waiting.ageMs(known);
    const { pod } = opened;
    if (opened.kind === 'gate-only') {
      meters.opened('gate-only', waitedMs);
      telling.placementFailed(pod, opened.why);
      return;
    }
    const { decision } = opened;
    meters.opened(decision.outcome, waitedMs);
    if (decision.outcome === 'fallback') telling.imageUnknown(pod, decision, waitedMs);
    if (decision.outcome === 'pending') {
      known.told = true;
      telling.noCommonArchitecture(pod, decision.message ?? describeRecorded(pod));
    }
    const [before, now] = [decision.replaces?.architectures, decision.required];
    if (before?.length && now?.length && !now.some((name) => before.includes(name)))
      telling.contradiction(pod, before, now);
    log.debug(
      { pod: `${pod.metadata?.namespace}/${pod.metadata?.name}`, outcome: decision.outcome, waitedMs },
      'a gate was opened',
    );
  }

  /** Conflicts pass, but not all of them: who guards changes to pods may refuse them with this status too. */
  function isLasting(error: KubeError, known: Waiting): boolean {
    return error.code === 'conflict' ? remainingMs(known) <= -conflictsMs : isRefusal(error);
  }

  function isExpired(known: Waiting): boolean {
    return remainingMs(known) <= 0;
  }

  function remainingMs(known: Waiting): number {
    return leading.configuration().maxGateDuration - waiting.ageMs(known);
  }

  /** Never at once: a time that is over by now is seen at the next look. */
  function lookLater(key: string, known: Waiting): void {
    const ms = Math.min(nextLookMs(waiting.ageMs(known), known.uid), remainingMs(known));
    queue.add(key, Math.max(1, ms));
  }

  await policiesKnown(leading, clock.timer);
  caches.waitingPods.onEach(({ namespace, name, object }) => {
    const key = `${namespace}/${name}`;
    if (object === undefined) waiting.forget(key);
    else queue.add(key);
  });
  caches.namespaces.onEach(({ name, object, previous }) => {
    if (JSON.stringify(object) === JSON.stringify(previous)) return;
    for (const { pod } of caches.waitingPods.values())
      if (pod.metadata?.namespace === name) queue.add(`${name}/${pod.metadata.name}`);
  });
  await queue.run(
    [...caches.waitingPods.values()].map(({ pod }) => `${pod.metadata?.namespace}/${pod.metadata?.name}`),
  );
  asking.stop();
  meters.close();
}

/**
 * Whether the API server understood the patch and does not want it. Other admission webhooks and policies choose the status
 * of their refusals themselves; 400 is what the API server makes of one without.
 */
function isRefusal({ code, temporary }: KubeError): boolean {
  return !temporary && code !== 'conflict' && code !== 'unauthorized';
}

function reasonOf({ images }: PlacementDecision): WaitingReason {
  const [first] = images.flatMap(({ unknown }) => (unknown === undefined ? [] : [unknown]));
  return (first ?? 'unknown') as WaitingReason;
}
