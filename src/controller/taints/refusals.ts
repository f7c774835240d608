/**
 * Pods that the API server refuses to change, most often by a policy of the cluster. It will refuse them again in ten seconds, so each
 * of them is backed off, longer each time. The reason stays known meanwhile.
 */
import type { Taint } from '../../kube/api/objects.ts';
import type { Clock } from '../../async/clock.ts';
import type { RunningPod } from '../caches/cached.ts';

export interface Refusals {
  add(pod: RunningPod, taint: Taint, why: string): void;
  /** Why the pod was refused last; `undefined`: it was not. */
  why(pod: RunningPod, taint: Taint): string | undefined;
  isBackedOff(pod: RunningPod, taint: Taint): boolean;
  /** Forgets all but these. */
  keep(pods: Iterable<{ readonly pod: RunningPod; readonly taint: Taint }>): void;
}

/** The next run tries again after the first refusal: a person who mends a policy at once sees it work. */
const backoff = { secondMs: 20_000, mostMs: 10 * 60_000 };

interface Refusal {
  readonly why: string;
  readonly times: number;
  readonly until: number;
}

export function createRefusals(clock: Clock): Refusals {
  let known = new Map<string, Refusal>();
  return {
    add: (pod, taint, why) => {
      const times = (known.get(keyOf(pod, taint))?.times ?? 0) + 1;
      const ms = times === 1 ? 0 : Math.min(backoff.mostMs, backoff.secondMs * 2 ** Math.min(times - 2, 20));
      known.set(keyOf(pod, taint), { why, times, until: clock.monotonic() + ms });
    },
    why: (pod, taint) => known.get(keyOf(pod, taint))?.why,
    isBackedOff: (pod, taint) => clock.monotonic() < (known.get(keyOf(pod, taint))?.until ?? 0),
    keep: (pods) => {
      const keys = new Set([...pods].map(({ pod, taint }) => keyOf(pod, taint)));
      known = new Map([...known].filter(([key]) => keys.has(key)));
    },
  };
}

function keyOf({ uid }: RunningPod, { key, value = '' }: Taint): string {
  return `${uid} ${key}=${value}`;
}
