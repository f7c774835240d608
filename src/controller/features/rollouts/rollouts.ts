/**
 * Follows `ArchitectureRollout`s, one key each. Changes of the rollout and of its namespace's pods cause at
 * most one reconcile a second: count pods (`pods.ts`), find what holds them (`observation.ts`, `blocked.ts`), compare
 * (`health.ts`), step (`progress.ts`), write the status (`status.ts`), move pods (`mover.ts`).
 *
 * The status is written before pods are moved. New pods are chosen at the gate by `shares.ts`.
 */
import type { KubeObject } from '../../../kube/api/objects.ts';
import { keyOf } from '../../../kube/queue.ts';
import { readRollout, rolloutKind, rolloutsPath, type Rollout } from '../../../policy/resources/rollout.ts';
import type { Feature, LeaderContext, ReconcileResult } from '../../lead/feature.ts';
import type { ResourceStatus } from '../../write/conditions.ts';
import { applyStatus } from '../../write/own-objects.ts';
import { verdictOf, type RollbackVerdict } from './health.ts';
import { orderPods, podsToOrder } from './order.ts';
import { moves, PodMover } from './mover.ts';
import { maxRollouts, PodCounts, type PodCount, type RolledPod } from './pods.ts';
import { progressOf, type Progress } from './progress.ts';
import { rollbacks, RolloutReports, rolloutsByPhase } from './reports.ts';
import { heldBy, leftBehind, lookAt, missingIn, statusOf, type Observation } from './observation.ts';
import { invalidStatus, readProgress, rolloutStatus } from './status.ts';
import { createVolumesPermit, type VolumesPermit } from './volumes.ts';

/** Events of a rolling update come in hundreds. */
const eventsMs = 1000;
/** Times of pods pass without an event. */
const lookMs = 5000;
/** One beyond the limit, or complete: its pods cause events. Also while rollouts are switched off. */
const restMs = 60_000;

export const rollouts: Feature = {
  name: 'rollouts',
  metrics: [rolloutsByPhase, rollbacks, moves],
  workers: 2,
  start: (leader, enqueue) => {
    const { caches } = leader;
    const counts = new PodCounts(leader);
    const work = new RolloutReconciler(leader, counts);
    // The role `edit` may create any number of others, which pods do not concern.
    const podChanged = ({ namespace }: { readonly namespace: string }): void => {
      for (const name of counts.followedIn(namespace)) enqueue(`${namespace}/${name}`, eventsMs);
    };
    caches.runningPods.onEach(podChanged);
    caches.waitingPods.onEach(podChanged);
    caches.rollouts.onEach(({ namespace, name }) => enqueue(`${namespace}/${name}`));
    return {
      keys: () => [...caches.rollouts.values()].map(keyOf),
      reconcile: (key) => work.reconcile(key),
    };
  },
};

export class RolloutReconciler {
  readonly #leader: LeaderContext;
  /** Restarts of pods when first seen in the attempt that began then, by key of the rollout, by uid. */
  readonly #restarts = new Map<string, { readonly since: number; readonly first: Map<string, number> }>();
  readonly #mover: PodMover;
  readonly #reports: RolloutReports;
  readonly #volumesPermit: VolumesPermit;
  readonly #counts: PodCounts;

  constructor(leader: LeaderContext, counts: PodCounts) {
    this.#leader = leader;
    this.#counts = counts;
    this.#volumesPermit = createVolumesPermit(leader);
    this.#mover = new PodMover(leader);
    this.#reports = new RolloutReports(leader);
  }

  async reconcile(key: string): Promise<ReconcileResult> {
    const { caches, serverNow, configuration } = this.#leader;
    const [namespace = '', name = ''] = key.split('/');
    const object = caches.rollouts.get(namespace, name);
    if (object === undefined || object.metadata?.deletionTimestamp !== undefined) {
      this.#restarts.delete(key);
      this.#reports.forget(key);
      return undefined;
    }
    if (!configuration().rollouts) return { requeueAfterMs: restMs };
    const { value: rollout, problems } = readRollout(object);
    const count = rollout && this.#counts.count(namespace, object);
    if (rollout && count?.ofRollout.has(name)) return await this.#follow(object, rollout, count);
    const why = rollout ? [`the namespace has ${maxRollouts} older rollouts`] : problems;
    await this.#write(object, invalidStatus(why, object, serverNow()));
    return rollout && { requeueAfterMs: restMs };
  }

  async #follow(object: KubeObject, rollout: Rollout, count: PodCount): Promise<ReconcileResult> {
    const { serverNow } = this.#leader;
    const key = keyOf(object);
    // Whole seconds, as the status has them.
    const now = Math.floor(serverNow() / 1000) * 1000;
    const before = readProgress(object);
    const seen = await lookAt(rollout, before, count, this.#volumesPermit, this.#leader);
    const workloads = seen.map(({ workload }) => workload);
    const missing = missingIn(rollout, workloads, count);
    const verdict = before && this.#verdict(key, rollout, before, seen, now);
    const holds = new Map(seen.map((each) => [each, heldBy(each, this.#mover.delayOf(rollout, each))]));
    const progress = progressOf(rollout, before, {
      now,
      verdict,
      hasNodes: this.#hasNodes(rollout.architecture),
      blocked: blockedBy(seen, missing.message),
      left: firstOf(seen, leftBehind),
      held: firstOf(seen, (each) => holds.get(each)),
    });
    const held = (each: Observation): string | undefined =>
      progress.newPods === 'Other' ? this.#mover.remaining(each) : holds.get(each);
    const statuses = [...seen.map((each) => statusOf(each, held(each))), ...missing.workloads];
    await this.#write(object, rolloutStatus(rollout, progress, statuses, object, now));
    this.#reports.report(object, before, progress, verdict, now);
    await this.#order(rollout, progress, seen);
    const nextMs = await this.#mover.move(rollout, progress, seen);
    const pauseMs = progress.phase === 'Complete' ? restMs : lookMs;
    return { requeueAfterMs: Math.max(eventsMs, nextMs === undefined ? pauseMs : Math.min(nextMs, lookMs)) };
  }

  #verdict(
    key: string,
    rollout: Rollout,
    { startedAt: since }: Progress,
    seen: readonly Observation[],
    now: number,
  ): RollbackVerdict | undefined {
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
    const { caches, configuration } = this.#leader;
    return (
      configuration().schedulableArchitectures.includes(architecture) ||
      [...caches.nodes.values()].some((node) => node.architecture === architecture && !node.deleting)
    );
  }

  async #write(object: KubeObject, status: ResourceStatus): Promise<void> {
    const path = rolloutsPath(object.metadata?.namespace, object.metadata?.name);
    // From a late cache, a rollback would be undone.
    await applyStatus(this.#leader, { kind: rolloutKind, path, object }, status, { follows: true });
  }

  /** Prepares scale-downs. */
  async #order({ steps }: Rollout, { newPods, step }: Progress, seen: readonly Observation[]): Promise<void> {
    const wanted = steps[step];
    if (newPods === undefined || newPods === 'Other' || wanted === undefined) return;
    for (const { workload, blocked } of seen)
      if (blocked === undefined) await orderPods(podsToOrder(workload, wanted), this.#leader);
  }
}

/** Why no workload can be moved; `undefined`: some can. @param missing why there is none */
function blockedBy(seen: readonly Observation[], missing: string): string | undefined {
  if (seen.length === 0) return missing;
  if (seen.some(({ blocked }) => blocked === undefined)) return undefined;
  return `none of its workloads can be moved: ${firstOf(seen, ({ blocked }) => blocked)}`;
}

/** The first workload with a reason, and how many others have one. */
function firstOf(
  seen: readonly Observation[],
  reasonOf: (each: Observation) => string | undefined,
): string | undefined {
  const [first, ...others] = seen.flatMap((each) => {
    const reason = reasonOf(each);
    return reason === undefined ? [] : [`${each.workload.name}: ${reason}`];
  });
  return first === undefined || others.length === 0 ? first : `${first}; and ${others.length} more`;
}
