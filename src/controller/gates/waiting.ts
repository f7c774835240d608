/**
 * What is remembered of the pods that wait, in memory only: a new leader finds out again. The age of a pod is taken from
 * the API server's clock when it is first seen, and from our monotonic clock from then on, so that no clock that is set
 * makes a pod older or younger.
 */
import type { FactsByImage } from '../../cluster/facts-of-pod.ts';
import type { Pod } from '../../kube/api/objects.ts';
import type { Clock } from '../../async/clock.ts';
import { timeOf } from '../caches/time.ts';
import { ageBuckets, type AgeBucket, type WaitingReason } from './metrics.ts';

export interface Waiting {
  readonly uid: string;
  /** Monotonic time of its creation. */
  readonly bornAt: number;
  reason: WaitingReason;
  /** What was found for it, to be decided upon. */
  answer: { readonly images: string; readonly facts: FactsByImage } | undefined;
  /** Its images were asked about once more, because by what memory knew of them they share no architecture. */
  confirmed: boolean;
  /** Its gate is gone; the cache has not heard of it yet. */
  opened: boolean;
  /** Its owner was told that its images share no architecture. */
  told: boolean;
}

export interface WaitingPods {
  /** What is remembered of the pod; a pod of the same name with another UID is another one. */
  of(key: string, pod: Pod): Waiting;
  get(key: string): Waiting | undefined;
  /** Milliseconds since its creation. */
  ageMs(waiting: Waiting): number;
  forget(key: string): void;
  /** How many wait, by age and reason. */
  counts(): ReadonlyMap<string, number>;
  readonly size: number;
}

/** Makes an empty memory of pods. */
export function createWaitingPods(options: {
  readonly clock: Clock;
  readonly serverNow: () => number;
}): WaitingPods {
  const { clock, serverNow } = options;
  const pods = new Map<string, Waiting>();

  function ageMs({ bornAt }: Waiting): number {
    return clock.monotonic() - bornAt;
  }

  return {
    of: (key, { metadata }) => {
      const uid = metadata?.uid ?? '';
      const known = pods.get(key);
      if (known?.uid === uid) return known;
      const createdAt = timeOf(metadata?.creationTimestamp);
      // A time that is not there, or lies in the future, is now.
      const age = createdAt === 0 ? 0 : Math.max(0, serverNow() - createdAt);
      const bornAt = clock.monotonic() - age;
      const waiting: Waiting = {
        uid,
        bornAt,
        reason: 'new',
        answer: undefined,
        confirmed: false,
        opened: false,
        told: false,
      };
      pods.set(key, waiting);
      return waiting;
    },
    get: (key) => pods.get(key),
    ageMs,
    forget: (key) => {
      pods.delete(key);
    },
    counts: () => {
      const counts = new Map<string, number>();
      for (const waiting of pods.values()) {
        if (waiting.opened) continue;
        const key = `${bucketOf(ageMs(waiting))} ${waiting.reason}`;
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
      return counts;
    },
    get size() {
      return pods.size;
    },
  };
}

function bucketOf(ageMs: number): AgeBucket {
  for (const [name, bound] of Object.entries(ageBuckets)) if (ageMs < bound) return name as AgeBucket;
  return 'older';
}
