/**
 * Follows `ArchitectureRollout`s, one key each. Changes of the rollout and of its namespace's pods cause at
 * most one reconcile a second: count pods (`pods.ts`), find what holds them (`seen.ts`, `blocked.ts`), compare
 * (`health.ts`), step (`progress.ts`), find names without pods (`missing.ts`), write the status (`status.ts`), move pods (`moves.ts`).
 *
 * The status is written before pods are moved. New pods are chosen at the gate by `shares.ts`.
 */
import { BoundedMap } from '../../../async/bounded-map.ts';
import type { KubeObject } from '../../../kube/api/objects.ts';
import { keyOf } from '../../../kube/queue.ts';
import { resourceApiVersion } from '../../../policy/resources/placement.ts';
import { readRollout, rolloutKind, rolloutsPath, type Rollout } from '../../../policy/resources/rollout.ts';
import type { Feature, Leading } from '../../lead/leading.ts';
import { applyStatus } from '../../write/own-objects.ts';
import { createReconciler, type ReconcileResult } from '../../lead/reconciler.ts';
import { verdictOf, type Verdict } from './health.ts';
import { missingIn } from './missing.ts';
import type { Eviction } from '../../write/evictions.ts';
import { bindRolloutMetrics, type RolloutMeters } from './metrics.ts';
import { orderPods, podsToOrder } from './order.ts';
import { printable } from '../../../names/printable.ts';
import { fullBecause, move, podsToRebalance, podsToReturn } from './moves.ts';
import { maxRollouts, olderRollouts, type RolledPod } from './pods.ts';
import { progressOf, type Phase, type Progress } from './progress.ts';
import { heldBy, lookAt, statusOf, type Seen } from './seen.ts';
import { invalidStatus, readProgress, rolloutStatus } from './status.ts';
import { KnownVolumes } from './volumes.ts';

/** Events of a rolling update come in hundreds. */
const eventsMs = 1000;
/** Times of pods pass without an event. */
const lookMs = 5000;
/** An ended rollout changes when pods or the object change. */
const restMs = 60_000;
/** A workload is not rebalanced endlessly if its pods return to where they were. */
const movesOfPod = { most: 2, inMs: 60 * 60_000 };
const maxRemembered = 5000;
/** A step that takes longer is worth an event. */
const heldMs = 60_000;

export const followRollouts: Feature = async (leading) => {
  const { caches, signal, configuration, log } = leading;
  if (!configuration().rollouts) {
    log.debug('ArchitectureRollouts are not followed: the setting rollouts is false');
    return;
  }
  const work = new RolloutReconciler(leading);
  const reconciler = createReconciler({ leading, workers: 2, reconcile: (key) => work.reconcile(key) });
  const podChanged = ({ namespace }: { readonly namespace: string }): void => {
    for (const object of caches.rollouts.values(namespace)) {
      const key = keyOf(object);
      if (work.isFollowed(key)) reconciler.add(key, eventsMs);
    }
  };
  caches.runningPods.onEach(podChanged);
  caches.waitingPods.onEach(podChanged);
  caches.rollouts.onEach(({ namespace, name }) => reconciler.add(`${namespace}/${name}`));
  await caches.ready(signal).catch(() => undefined);
  await reconciler.run([...caches.rollouts.values()].map(keyOf));
  work.close();
};

const eventReasons = {
  Waiting: 'RolloutWaiting',
  Progressing: 'RolloutProgressing',
  Paused: 'RolloutPaused',
  RolledBack: 'RolloutRolledBack',
  Aborted: 'RolloutAborted',
  Complete: 'RolloutComplete',
} as const satisfies Readonly<Record<Phase, string>>;

/** The last leader may have stopped between the status and the event. Two events are better than none. */
const unreportedMs = 5 * 60_000;

function isFresh({ phase, endedAt = 0 }: Progress, now: number): boolean {
  return phase === 'RolledBack' && now - endedAt < unreportedMs;
}

interface Held {
  /** `undefined`: it is not held. */
  readonly since?: number | undefined;
  readonly isTold: boolean;
}

export class RolloutReconciler {
  readonly #leading: Leading;
  readonly #meters: RolloutMeters;
  /** Keys of those in force: the role `edit` may create any number of others, which pods do not concern. */
  readonly #followed = new Set<string>();
  /** Restarts of pods when first seen in the attempt that began then, by key of the rollout, by uid. */
  readonly #restarts = new Map<string, { readonly since: number; readonly first: Map<string, number> }>();
  /** Rebalanced pods by workload. */
  readonly #moves = new BoundedMap<string, { readonly since: number; readonly count: number }>(maxRemembered);
  /** Why evictions of a workload were refused. */
  readonly #delays = new BoundedMap<string, string>(maxRemembered);
  /** Since when the step is held, and whether an event said so, by key of the rollout. */
  readonly #held = new Map<string, Held & { readonly step: string }>();
  /** When an eviction was refused last, by uid of the pod and by workload. */
  readonly #refusedAt = new BoundedMap<string, number>(maxRemembered);
  readonly #volumes: KnownVolumes;

  constructor(leading: Leading) {
    this.#leading = leading;
    this.#volumes = new KnownVolumes(leading);
    const { caches } = leading;
    this.#meters = bindRolloutMetrics(leading.metrics, () =>
      [...caches.rollouts.values()].flatMap((object) => readProgress(object)?.phase ?? []),
    );
  }

  close(): void {
    this.#meters.close();
  }

  isFollowed(key: string): boolean {
    return this.#followed.has(key);
  }

  async reconcile(key: string): Promise<ReconcileResult> {
    const { caches, serverNow } = this.#leading;
    const [namespace = '', name = ''] = key.split('/');
    const object = caches.rollouts.get(namespace, name);
    this.#followed.delete(key);
    if (object === undefined || object.metadata?.deletionTimestamp !== undefined) {
      this.#restarts.delete(key);
      this.#held.delete(key);
      return undefined;
    }
    const { rollout, problems } = readRollout(object);
    const older = rollout ? olderRollouts(rollout, caches.rollouts.values(namespace)) : [];
    if (rollout && older.length < maxRollouts) {
      this.#followed.add(key);
      return await this.#follow(object, rollout, older);
    }
    const why = rollout ? [`the namespace has ${maxRollouts} older rollouts`] : problems;
    await this.#write(object, invalidStatus(why, object, serverNow()));
    return rollout && { requeueAfterMs: restMs };
  }

  async #follow(
    object: KubeObject,
    rollout: Rollout,
    older: readonly KubeObject[],
  ): Promise<ReconcileResult> {
    const { caches, serverNow } = this.#leading;
    const key = keyOf(object);
    // Whole seconds, as the status has them.
    const now = Math.floor(serverNow() / 1000) * 1000;
    const before = readProgress(object);
    const isFirstLook = !this.#restarts.has(key);
    const seen = await lookAt(rollout, before, { older, volumes: this.#volumes, leading: this.#leading });
    const workloads = seen.map(({ workload }) => workload);
    const missing = missingIn(rollout, workloads, older, caches);
    const verdict = before && this.#verdict(key, rollout, before, seen, now);
    const holds = new Map(
      seen.map((each) => [
        each,
        heldBy(
          each,
          rollout.rebalance ? this.#delayOf(rollout, each) : 'pods are chosen when they are created',
        ),
      ]),
    );
    const progress = progressOf(rollout, before, {
      now,
      verdict,
      hasNodes: this.#hasNodes(rollout.architecture),
      blocked: blockedBy(seen, missing.message),
      held: firstOf(seen, (each) => holds.get(each)),
    });
    const held = (each: Seen): string | undefined =>
      progress.newPods === 'Other' ? this.#remaining(rollout, each) : holds.get(each);
    const statuses = [...seen.map((each) => statusOf(each, held(each))), ...missing.workloads];
    const written = rolloutStatus(rollout, progress, statuses, object, now);
    await this.#write(object, written);
    const isNew = progress.phase !== before?.phase || progress.step !== before.step;
    const isNews = before !== undefined || progress.phase === 'Waiting';
    if (isNews && (isNew || (isFirstLook && isFresh(progress, now)))) this.#report(object, progress, verdict);
    this.#reportHeld(object, progress, now);
    await this.#order(rollout, progress, seen);
    const nextMs = await this.#move(rollout, progress, seen);
    const isOver = progress.phase === 'Complete' && !rollout.rebalance;
    return { requeueAfterMs: isOver ? restMs : Math.max(eventsMs, Math.min(nextMs, lookMs)) };
  }

  #verdict(
    key: string,
    rollout: Rollout,
    { startedAt: since }: Progress,
    seen: readonly Seen[],
    now: number,
  ): Verdict | undefined {
    const known = this.#restarts.get(key);
    const first = known?.since === since ? known.first : new Map<string, number>();
    this.#restarts.set(key, { since, first });
    const there = new Map(seen.flatMap(({ workload }) => workload.pods.map((pod) => [pod.uid, pod])));
    for (const uid of first.keys()) if (!there.has(uid)) first.delete(uid);
    for (const { uid, createdAt, restarts } of there.values())
      if (createdAt < since && !first.has(uid)) first.set(uid, restarts);
    const restartsOf = ({ uid, restarts }: RolledPod): number => restarts - (first.get(uid) ?? 0);
    for (const { workload, broken } of seen) {
      const verdict = verdictOf({ workload, rollout, since, now, restartsOf, broken });
      if (verdict) return verdict;
    }
    return undefined;
  }

  #hasNodes(architecture: string): boolean {
    const { caches, configuration } = this.#leading;
    if (configuration().schedulableArchitectures.includes(architecture)) return true;
    for (const node of caches.nodes.values())
      if (node.architecture === architecture && !node.deleting) return true;
    return false;
  }

  async #write(object: KubeObject, status: object | undefined): Promise<void> {
    if (status === undefined) return;
    const path = rolloutsPath(object.metadata?.namespace, object.metadata?.name);
    // From a late cache, a rollback would be undone.
    await applyStatus(this.#leading, { kind: rolloutKind, path, object }, status, { follows: true });
    await this.#leading.step('rollouts/status-written');
  }

  #report(object: KubeObject, { phase, message }: Progress, verdict?: Verdict): void {
    const isRolledBack = phase === 'RolledBack';
    if (isRolledBack && verdict) this.#meters.rolledBack(verdict.reason);
    this.#record(object, isRolledBack ? 'Warning' : 'Normal', eventReasons[phase], message);
  }

  /** Once for each step. */
  #reportHeld(object: KubeObject, { attempt, step, held, message }: Progress, now: number): void {
    const key = keyOf(object);
    const id = `${attempt}/${step}`;
    const known = this.#held.get(key);
    const before: Held = known?.step === id ? known : { isTold: false };
    const since = held === undefined ? undefined : (before.since ?? now);
    const isNews = since !== undefined && !before.isTold && now - since >= heldMs;
    this.#held.set(key, { step: id, since, isTold: before.isTold || isNews });
    if (isNews) this.#record(object, 'Normal', 'RolloutHeld', message);
  }

  #record(object: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { events, log } = this.#leading;
    const { name = '', namespace, uid } = object.metadata ?? {};
    const about = { apiVersion: resourceApiVersion, kind: rolloutKind, namespace, name, uid };
    events.record(about, { type, reason, message });
    log.info({ namespace, rollout: name, reason, message }, 'a rollout progresses');
  }

  /** Why pods of a workload are not evicted now. */
  #delayOf({ namespace }: Rollout, { workload }: Seen): string {
    return (
      fullBecause(workload, this.#leading.configuration().misplacedPodsShare) ??
      this.#delays.peek(`${namespace}/${workload.name}`) ??
      'they are being evicted within evictionsPerMinute'
    );
  }

  /** Which pods are still to be moved back. */
  #remaining(rollout: Rollout, each: Seen): string | undefined {
    const count = each.workload.pods.filter(({ isTarget, isMoved }) => isTarget && isMoved).length;
    return count === 0 ? undefined : `${count} pods are to be moved back; ${this.#delayOf(rollout, each)}`;
  }

  /** Prepares scale-downs. */
  async #order({ steps }: Rollout, { newPods, step }: Progress, seen: readonly Seen[]): Promise<void> {
    const wanted = steps[step];
    if (newPods === undefined || newPods === 'Other' || wanted === undefined) return;
    for (const { workload, blocked } of seen)
      if (blocked === undefined) await orderPods(podsToOrder(workload, wanted), this.#leading);
  }

  /** @returns milliseconds until it may move the next pod */
  async #move(rollout: Rollout, { phase, newPods }: Progress, seen: readonly Seen[]): Promise<number> {
    const percent = this.#leading.configuration().misplacedPodsShare;
    if (phase === 'RolledBack' || phase === 'Aborted') {
      for (const { workload } of seen) {
        const key = `${rollout.namespace}/${workload.name}`;
        await this.#moveEach(podsToReturn(workload, percent), key);
      }
      return lookMs;
    }
    if (!rollout.rebalance || newPods === undefined) return lookMs;
    const keyOfWorkload = ({ workload }: Seen): string => `${rollout.namespace}/${workload.name}`;
    for (const each of this.#refusedLast(seen, keyOfWorkload)) {
      if (each.blocked !== undefined) continue;
      const waitMs = await this.#rebalance(each, keyOfWorkload(each), percent);
      if (waitMs > 0) return waitMs;
    }
    return lookMs;
  }

  /** @returns milliseconds until the next pod may be evicted; 0: there is none to evict now */
  async #rebalance({ workload, wanted, possible }: Seen, key: string, percent: number): Promise<number> {
    const pods = this.#refusedLast(workload.pods, ({ uid }) => uid);
    for (const pod of podsToRebalance({ ...workload, pods }, possible, wanted, percent)) {
      if (this.#movesOf(key).count >= pods.length * movesOfPod.most) {
        this.#delays.set(key, 'its pods were moved often in this hour, and new ones came back');
        break;
      }
      const waitMs = this.#leading.evictionPace.tryTake(pod.namespace);
      if (waitMs > 0) return waitMs;
      const outcome = await this.#moveOne(pod, key);
      const { since, count } = this.#movesOf(key);
      if (outcome === 'evicted') this.#moves.set(key, { since, count: count + 1 });
      else if (outcome !== 'changed') this.#refusedAt.set(key, this.#leading.clock.monotonic());
    }
    return 0;
  }

  /** What a budget holds back must not use up the evictions of the rest. */
  #refusedLast<T>(items: readonly T[], idOf: (item: T) => string): readonly T[] {
    const refusedAt = (item: T): number => this.#refusedAt.peek(idOf(item)) ?? 0;
    return items.toSorted((a, b) => refusedAt(a) - refusedAt(b));
  }

  /** The moves of a workload in this hour. */
  #movesOf(key: string): { readonly since: number; readonly count: number } {
    const now = this.#leading.clock.monotonic();
    const last = this.#moves.get(key);
    return last && now - last.since < movesOfPod.inMs ? last : { since: now, count: 0 };
  }

  /** Those of one workload, which usually have one budget: after a refusal, the others wait too. */
  async #moveEach(pods: readonly RolledPod[], key: string): Promise<void> {
    for (const pod of this.#refusedLast(pods, ({ uid }) => uid))
      if ((await this.#moveOne(pod, key)) === 'held') break;
  }

  /** @param key of its workload */
  async #moveOne(pod: RolledPod, key: string): Promise<Eviction['outcome']> {
    const eviction = await move(this.#leading, pod);
    const { outcome } = eviction;
    if (outcome === 'changed') return outcome;
    this.#meters.moved(outcome);
    if ('why' in eviction) {
      this.#refusedAt.set(pod.uid, this.#leading.clock.monotonic());
      this.#delays.set(key, printable(eviction.why, 300));
    } else this.#delays.delete(key);
    return outcome;
  }
}

/** Why no workload can be moved; `undefined`: some can. @param missing why there is none */
function blockedBy(seen: readonly Seen[], missing: string): string | undefined {
  if (seen.length === 0) return missing;
  if (seen.some(({ blocked }) => blocked === undefined)) return undefined;
  return `none of its workloads can be moved: ${firstOf(seen, ({ blocked }) => blocked)}`;
}

/** The first workload with a reason, and how many others have one. */
function firstOf(seen: readonly Seen[], reasonOf: (each: Seen) => string | undefined): string | undefined {
  const [first, ...others] = seen.flatMap((each) => {
    const reason = reasonOf(each);
    return reason === undefined ? [] : [`${each.workload.name}: ${reason}`];
  });
  return first === undefined || others.length === 0 ? first : `${first}; and ${others.length} others`;
}
