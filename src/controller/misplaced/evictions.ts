/** Evictions: the request, and how many pods of a workload are disrupted. */
import { BoundedMap } from '../../async/bounded-map.ts';
import { KubeError, type KubeErrorCode } from '../../kube/api/errors.ts';
import { evictPod } from '../../kube/api/change.ts';
import type { Pod } from '../../kube/api/objects.ts';
import { hasEnded, type RunningPod } from '../caches/cached.ts';
import type { Leading } from '../leadership/leading.ts';
import type { Workload } from '../scope/workload.ts';

/** Pods that are missing so long after an eviction are missing for another reason. */
const rememberMs = 10 * 60_000;
/** A new leader cannot know which missing pods were evicted. The last leader's evictions settle by then. */
const newLeaderMs = 5 * 60_000;
/** The cache shows by then whether an eviction without an answer was carried out. */
const uncertainMs = 30_000;
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
  /** By uid of the workload: desired pods of its owners, by their uid. */
  readonly #owners = new BoundedMap<string, Map<string, number | undefined>>(maxWorkloads);

  constructor(leading: Leading) {
    this.#leading = leading;
    this.#startedAt = leading.clock.monotonic();
  }

  /** How many pods of an owner are there and being deleted. */
  goingPods(ownerUid: string): number {
    return [...this.#leading.caches.runningPods.values()].filter(
      ({ owner, deleting, uid }) => owner?.uid === ownerUid && (deleting || this.#evicted.has(uid)),
    ).length;
  }

  /**
   * Whether another pod of the workload may be evicted now.
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

  /** @param isCertain false: no clear answer; the eviction counts until the pod turns out to exist */
  add({ uid, owner }: RunningPod, isCertain: boolean): void {
    this.#evicted.set(uid, { owner: owner?.uid ?? '', at: this.#leading.clock.monotonic(), isCertain });
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
      if (uid === pod.uid || (now - at >= uncertainMs && there.has(uid))) this.#evicted.delete(uid);
  }
}

/**
 * `evicted`: the pod goes. `changed`: it is no longer the same pod. `held`: not now (PodDisruptionBudget, too
 * many requests). `failed`: the API server refuses. `isCertain`: the pod was certainly not evicted.
 */
export type Eviction =
  | { readonly outcome: 'evicted' | 'changed' }
  | { readonly outcome: 'held' | 'failed'; readonly why: string; readonly isCertain: boolean };

/** Answers from before the eviction is carried out. */
const refusals: ReadonlySet<KubeErrorCode> = new Set([
  'too-many-requests',
  'forbidden',
  'invalid',
  'unauthorized',
]);

/**
 * Requests the eviction once. @param pod as just read: it stays if it changed since (became ready)
 * @throws KubeError if there is no answer, or leadership is lost
 */
export async function evict(
  pod: Pod,
  { client, signal }: Pick<Leading, 'client' | 'signal'>,
): Promise<Eviction> {
  const { namespace = '', name = '', uid, resourceVersion } = pod.metadata ?? {};
  try {
    await evictPod(client, { namespace, name }, { uid, resourceVersion }, signal);
    return { outcome: 'evicted' };
  } catch (error) {
    if (!(error instanceof KubeError) || error.code === 'not-leading' || error.code === 'timeout')
      throw error;
    if (error.code === 'not-found' || error.code === 'conflict') return { outcome: 'changed' };
    // Two budgets for one pod are answered by 500, every time.
    const outcome = error.code === 'too-many-requests' ? 'held' : 'failed';
    return { outcome, why: error.message, isCertain: refusals.has(error.code) };
  }
}

export interface DisruptionInput {
  /** All pods of this owner that have a node. */
  readonly pods: readonly RunningPod[];
  /** Desired pods of the owner; `undefined`: not known. */
  readonly wanted: number | undefined;
  /** Uids of pods that this leader evicted in the last minutes. */
  readonly evicted: ReadonlySet<string>;
  /** How many of the missing pods can be due to evictions. A new leader cannot know that: all. */
  readonly maxMissing: number;
  /** Pods created from then on are successors; `undefined`: none evicted. Server milliseconds, as `now`. */
  readonly since: number | undefined;
  readonly now: number;
}

/** A successor that is not ready by then has other problems, and blocks no further evictions. */
const settleMs = 10 * 60_000;

/**
 * How many pods of an owner are going, not replaced or not placed yet, or successors that are not ready.
 * Computed from the cluster, so a new leader gets the same number.
 */
export function disruptedPods({ pods, wanted, evicted, maxMissing, since, now }: DisruptionInput): number {
  const alive = pods.filter((pod) => !hasEnded(pod));
  const isGoing = ({ deleting, uid }: RunningPod): boolean => deleting || evicted.has(uid);
  const going = alive.filter(isGoing).length;
  // The owner counts a pod that is being deleted until its successor is there.
  const missing = Math.max(0, Math.min((wanted ?? pods.length) - alive.length, maxMissing));
  const isSettling = ({ ready, createdAt }: RunningPod): boolean =>
    !ready && since !== undefined && createdAt >= since && now - createdAt < settleMs;
  return going + missing + alive.filter((pod) => !isGoing(pod) && isSettling(pod)).length;
}

export function maxUnavailable(total: number, percent: number): number {
  return Math.max(1, Math.floor((total * percent) / 100));
}
