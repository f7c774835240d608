/**
 * The waiting pods, in memory only: a new leader finds them again. A pod's age comes from the API server's
 * clock when it is first seen, and then from our monotonic clock, so a clock that is set does not change it.
 */
import type { Pod } from '../../../kube/api/objects.ts';
import { timeOf } from '../../../kube/api/fields.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { ageBuckets, type AgeBucket, type WaitingReason } from './metrics.ts';

export const mostMs = 15_000;
const firstAttemptMs = 1000;
const spread = 0.2;

export interface WaitingPod {
  readonly uid: string;
  readonly ageMs: number;
  /** Why it waits; `undefined`: it does not. The cache may still show its gate. */
  reason: WaitingReason | undefined;
  /** Why it waits, as its last event says. */
  reported: string | undefined;
  /** Whether an event says that its images have no common architecture. */
  isPendingReported: boolean;
}

export class WaitingPods {
  readonly #leader: Pick<LeaderContext, 'clock' | 'serverNow'>;
  readonly #pods = new Map<string, WaitingPod>();

  constructor(leader: Pick<LeaderContext, 'clock' | 'serverNow'>) {
    this.#leader = leader;
  }

  /** The entry of a pod, made if there is none. A pod of the same name with another UID is another pod. */
  of(key: string, { metadata }: Pod): WaitingPod {
    const uid = metadata?.uid ?? '';
    const known = this.#pods.get(key);
    if (known?.uid === uid) return known;
    const { clock, serverNow } = this.#leader;
    // A time that is missing or in the future is now.
    const createdAt = timeOf(metadata?.creationTimestamp) || Number.POSITIVE_INFINITY;
    const bornAt = clock.monotonic() - Math.max(0, serverNow() - createdAt);
    const waiting: WaitingPod = {
      uid,
      get ageMs() {
        return clock.monotonic() - bornAt;
      },
      reason: 'new',
      reported: undefined,
      isPendingReported: false,
    };
    this.#pods.set(key, waiting);
    return waiting;
  }

  forget(key: string): void {
    this.#pods.delete(key);
  }

  /** Age and reason of each pod that waits. */
  all() {
    return [...this.#pods.values()].flatMap(({ ageMs, reason }) =>
      reason === undefined ? [] : [{ age: bucketOf(ageMs), reason }],
    );
  }
}

function bucketOf(ageMs: number): AgeBucket {
  for (const [name, bound] of Object.entries(ageBuckets)) if (ageMs < bound) return name as AgeBucket;
  return 'older';
}

/**
 * Milliseconds until the next attempt: 1, 2, 4, 8 and 16 s after the pod's creation, then every 15 s. They follow
 * from its age, so a new leader goes on where the last one was.
 * @param random 0 to 1: spreads pods that were created at the same time
 */
export function nextAttemptMs(ageMs: number, random: number): number {
  return Math.min(mostMs, Math.max(firstAttemptMs, ageMs)) * (1 + spread * random);
}
