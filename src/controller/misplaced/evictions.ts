/** The evictions of one leader: how many pods of a workload are disrupted, and when the next eviction may be requested. */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { RunningPod } from '../caches/cached.ts';
import type { Leading } from '../leadership/leading.ts';
import type { Workload } from '../scope/workload.ts';
import { disruptedPods, maxUnavailable } from './max-unavailable.ts';

/** Pods that are missing so long after an eviction are missing for another reason. */
const rememberMs = 10 * 60_000;
/** A new leader cannot know which of the missing pods were evicted. Evictions of the last leader are settled by then. */
const newLeaderMs = 5 * 60_000;
/** The cache shows the result of an eviction by then. */
const cacheLagMs = 30_000;
/** Evictions add a few workloads in a minute. */
const maxWorkloads = 1000;

interface Evicted {
  /** Uid. */
  readonly owner: string;
  readonly at: number;
  readonly isCertain: boolean;
}

export class Evictions {
  readonly #leading: Leading;
  readonly #startedAt: number;
  /** By uid of the pod. */
  #evicted = new Map<string, Evicted>();
  /** By uid of the workload: how many pods its owners want, by their uid. */
  readonly #owners = new BoundedMap<string, Map<string, number | undefined>>(maxWorkloads);
  #nextAt: number;

  constructor(leading: Leading) {
    this.#leading = leading;
    this.#startedAt = leading.clock.monotonic();
    this.#nextAt = this.#startedAt;
  }

  /** How many pods of an owner are there and being deleted. */
  goingPods(ownerUid: string): number {
    return [...this.#leading.caches.runningPods.values()].filter(
      ({ owner, deleting, uid }) => owner?.uid === ownerUid && (deleting || this.#evicted.has(uid)),
    ).length;
  }

  /**
   * Whether another pod of the workload may be evicted now.
   * @param pod as it was just read
   * @param since when the evictions of this workload began; server time, milliseconds
   */
  hasRoom(pod: RunningPod, workload: Workload, since: number | undefined): boolean {
    const { caches, clock, serverNow, configuration } = this.#leading;
    const now = clock.monotonic();
    this.#evicted = new Map([...this.#evicted].filter(([, { at }]) => now - at < rememberMs));
    this.#forgetUncertain(now, pod);
    const isNewLeader = now - this.#startedAt < newLeaderMs && since !== undefined;
    const owners = this.#ownersOf(pod, workload);
    const podsOf = Map.groupBy(caches.runningPods.values(), ({ owner }) => owner?.uid);
    let disrupted = 0;
    let total = 0;
    for (const [owner, wanted] of owners) {
      const pods = podsOf.get(owner) ?? [];
      const ours = [...this.#evicted].filter(([, each]) => each.owner === owner).map(([uid]) => uid);
      total += wanted ?? pods.length;
      disrupted += disruptedPods({
        pods,
        wanted,
        evicted: new Set(ours),
        maxMissing: isNewLeader ? Number.POSITIVE_INFINITY : ours.length,
        since,
        now: serverNow(),
      });
    }
    return disrupted < maxUnavailable(total, configuration().misplacedPodsShare);
  }

  /** @param isCertain false: there was no clear answer. The eviction counts until the pod turns out to be there. */
  add({ uid, owner }: RunningPod, isCertain: boolean): void {
    this.#evicted.set(uid, { owner: owner?.uid ?? '', at: this.#leading.clock.monotonic(), isCertain });
  }

  /** Reserves the next eviction under `evictionsPerMinute`. @returns milliseconds to wait for it */
  reserve(): number {
    const { clock, configuration } = this.#leading;
    const now = clock.monotonic();
    const at = Math.max(now, this.#nextAt);
    this.#nextAt = at + 60_000 / configuration().evictionsPerMinute;
    return at - now;
  }

  #ownersOf(pod: RunningPod, { top, wanted }: Workload): ReadonlyMap<string, number | undefined> {
    const owners = this.#owners.get(top.uid) ?? new Map<string, number | undefined>();
    owners.set(pod.owner?.uid ?? '', wanted);
    this.#owners.set(top.uid, owners);
    return owners;
  }

  /** Forgets evictions that did not happen: the pod was just read, or the cache has it. */
  #forgetUncertain(now: number, pod: RunningPod): void {
    const uncertain = [...this.#evicted].filter(([, { isCertain }]) => !isCertain);
    if (uncertain.length === 0) return;
    const alive = [...this.#leading.caches.runningPods.values()].filter(({ deleting }) => !deleting);
    const there = new Set(alive.map(({ uid }) => uid));
    for (const [uid, { at }] of uncertain)
      if (uid === pod.uid || (now - at >= cacheLagMs && there.has(uid))) this.#evicted.delete(uid);
  }
}
