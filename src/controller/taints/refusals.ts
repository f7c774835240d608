/**
 * Pods that the API server refuses to change, most often by a policy of the cluster. It will say the same in ten seconds, so each
 * of them rests, longer each time; what it said stays known meanwhile.
 */
import type { Taint } from '../../kube/api/objects.ts';
import type { Clock } from '../../async/clock.ts';
import type { RunningPod } from '../caches/caches.ts';

export interface Refusals {
  /** Notes a refusal, and why. */
  refused(pod: RunningPod, taint: Taint, why: string): void;
  /** Why the pod was refused last; undefined where it was not. */
  why(pod: RunningPod, taint: Taint): string | undefined;
  isResting(pod: RunningPod, taint: Taint): boolean;
  /** Forgets all but these. */
  keep(left: Iterable<{ readonly pod: RunningPod; readonly taint: Taint }>): void;
}

/** The first time the next round tries again: who is asked to change a policy and does so at once sees it work. */
const rest = { secondMs: 20_000, mostMs: 10 * 60_000 };

interface Refusal {
  readonly why: string;
  readonly times: number;
  readonly until: number;
}

/** Remembers nothing beyond this leader. */
export function createRefusals(clock: Clock): Refusals {
  let known = new Map<string, Refusal>();
  return {
    refused: (pod, taint, why) => {
      const times = (known.get(keyOf(pod, taint))?.times ?? 0) + 1;
      const restMs = times === 1 ? 0 : Math.min(rest.mostMs, rest.secondMs * 2 ** Math.min(times - 2, 20));
      known.set(keyOf(pod, taint), { why, times, until: clock.monotonic() + restMs });
    },
    why: (pod, taint) => known.get(keyOf(pod, taint))?.why,
    isResting: (pod, taint) => clock.monotonic() < (known.get(keyOf(pod, taint))?.until ?? 0),
    keep: (left) => {
      const kept = new Map<string, Refusal>();
      for (const { pod, taint } of left) {
        const refusal = known.get(keyOf(pod, taint));
        if (refusal) kept.set(keyOf(pod, taint), refusal);
      }
      known = kept;
    },
  };
}

function keyOf({ uid }: RunningPod, { key, value = '' }: Taint): string {
  return `${uid} ${key}=${value}`;
}
