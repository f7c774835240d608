/**
 * What this leader has evicted, for two limits: the share of a workload, and one eviction for each cause. A
 * pod of a workload that was evicted for a cause has successors; one on the wrong node again stays, because
 * evictions do not help (no webhook, or an unknown constraint).
 */
import { BoundedMap } from '../../../async/bounded-map.ts';
import type { RunningPod } from '../../state/cached.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import type { Workload } from '../../pods/workload.ts';
import { maxUnavailable } from '../../write/evictor.ts';

/** A successor that is not ready by then has other problems, and blocks no further evictions. */
const settleMs = 10 * 60_000;
/**
 * Pods that are younger than the first eviction less this are successors. Suspects are at least 30 s old, so
 * they are older, even if the clocks of several API servers differ.
 */
const marginMs = 15_000;
/** Evictions add a few in a minute. */
const maxCauses = 5000;

/** Why pods of a workload are evicted. */
export interface Cause {
  /** UID of the workload. */
  readonly uid: string;
  readonly digests: readonly string[];
  /** Architecture of the node that cannot run its images. */
  readonly architecture: string;
}

interface EvictionRecord {
  readonly workload: string;
  readonly owner: string;
  /** Server time, milliseconds. */
  readonly at: number;
}

type Leader = Pick<LeaderContext, 'caches' | 'serverNow' | 'configuration'>;

export class Evictions {
  readonly #leader: Leader;
  /** Keys: UIDs of pods. */
  #evicted = new Map<string, EvictionRecord>();
  /** When the evictions for a cause began; server time, milliseconds. */
  readonly #causes = new BoundedMap<string, number>(maxCauses);

  constructor(leader: Leader) {
    this.#leader = leader;
  }

  /** How many pods of an owner are there and being deleted. */
  goingPods(ownerUid: string): number {
    return this.#podsOf([ownerUid]).filter(({ deleting, uid }) => deleting || this.#evicted.has(uid)).length;
  }

  /** Whether the pod is a successor of one that was evicted for the same cause. */
  isSuccessor({ createdAt }: RunningPod, cause: Cause): boolean {
    return createdAt >= (this.#causes.get(keyOf(cause)) ?? Number.POSITIVE_INFINITY);
  }

  /** Whether another pod of the workload may be evicted: fewer than its share wait for a ready successor. */
  hasRoom({ owner }: RunningPod, { top, wanted = 0 }: Workload): boolean {
    const { serverNow, configuration } = this.#leader;
    this.#evicted = new Map([...this.#evicted].filter(([, { at }]) => serverNow() - at < settleMs));
    const evicted = [...this.#evicted.values()].filter(({ workload }) => workload === top.uid);
    const pods = this.#podsOf([owner?.uid ?? '', ...evicted.map((each) => each.owner)]);
    const since = successorsSince(Math.min(...evicted.map(({ at }) => at)));
    const successors = pods.filter(({ ready, createdAt }) => ready && createdAt >= since).length;
    const most = maxUnavailable(Math.max(wanted, pods.length), configuration().misplacedPodsShare);
    return evicted.length - successors < most;
  }

  /** @param at before the eviction; server time, milliseconds */
  add({ uid, owner }: RunningPod, cause: Cause, at: number): void {
    this.#evicted.set(uid, { workload: cause.uid, owner: owner?.uid ?? '', at });
    const key = keyOf(cause);
    if (!this.#causes.has(key)) this.#causes.set(key, successorsSince(at));
  }

  #podsOf(owners: readonly string[]): readonly RunningPod[] {
    const pods = [...this.#leader.caches.runningPods.values()];
    return pods.filter(({ owner }) => owners.includes(owner?.uid ?? ''));
  }
}

/** Times in objects are whole seconds: a successor of the same second seems older than the eviction. */
function successorsSince(evictedAt: number): number {
  return Math.floor((evictedAt - marginMs) / 1000) * 1000;
}

function keyOf({ uid, digests, architecture }: Cause): string {
  return JSON.stringify([uid, digests.toSorted(), architecture]);
}
