/**
 * The waiting pods, in memory only: a new leader finds them again. A pod's age comes from the API server's
 * clock when it is first seen, and then from our monotonic clock, so a clock that is set does not change it.
 */
import type { Clock } from '../../../async/clock.ts';
import type { Pod } from '../../../kube/api/objects.ts';
import { timeOf } from '../../../kube/api/fields.ts';
import type { LeaderContext } from '../../lead/leader-context.ts';
import { ageBuckets, type AgeBucket, type WaitingReason } from './metrics.ts';

export const mostMs = 15_000;
const firstAttemptMs = 1000;
const spread = 0.2;

export class WaitingPod {
  readonly uid: string;
  readonly #bornAt: number;
  readonly #clock: Clock;
  /** Why it waits; `undefined`: it does not. The cache may still show its gate. */
  reason: WaitingReason | undefined = 'new';
  /** Why it waits, as its last event says. */
  reported: string | undefined;
  /** Whether an event says that its images have no common architecture. */
  isPendingReported = false;

  constructor(uid: string, ageMs: number, clock: Clock) {
    this.uid = uid;
    this.#clock = clock;
    this.#bornAt = clock.monotonic() - ageMs;
  }

  get ageMs(): number {
    return this.#clock.monotonic() - this.#bornAt;
  }
}

export class WaitingPods {
  readonly #clock: Clock;
  readonly #serverNow: () => number;
  readonly #pods = new Map<string, WaitingPod>();

  constructor({ clock, serverNow }: Pick<LeaderContext, 'clock' | 'serverNow'>) {
    this.#clock = clock;
    this.#serverNow = serverNow;
  }

  /** The entry of a pod, made if there is none. A pod of the same name with another UID is another pod. */
  of(key: string, { metadata }: Pod): WaitingPod {
    const uid = metadata?.uid ?? '';
    const known = this.#pods.get(key);
    if (known?.uid === uid) return known;
    const createdAt = timeOf(metadata?.creationTimestamp);
    // A time that is missing or in the future is now.
    const ageMs = createdAt === 0 ? 0 : Math.max(0, this.#serverNow() - createdAt);
    const waiting = new WaitingPod(uid, ageMs, this.#clock);
    this.#pods.set(key, waiting);
    return waiting;
  }

  forget(key: string): void {
    this.#pods.delete(key);
  }

  groups(): ReadonlyMap<string, readonly WaitingPod[]> {
    return Map.groupBy(this.#pods.values(), ({ ageMs, reason }) => `${bucketOf(ageMs)} ${reason}`);
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
