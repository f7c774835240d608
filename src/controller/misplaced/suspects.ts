/**
 * Pods that are worth a check: they had time to become ready but are not, and a controller would replace them (a DaemonSet on the same node,
 * `daemon.ts`). Each is checked again after a pause that doubles: its facts may come late, but an application's own crash loop
 * must not cost a registry request every few seconds.
 */
import type { Clock } from '../../async/clock.ts';
import type { RunningPod } from '../caches/cached.ts';

/** How long a pod may take to become ready, for the first time or again. */
export const graceMs = 30_000;
const pause = { firstMs: 15_000, mostMs: 10 * 60_000 };

export interface Suspects {
  /** The suspects that are due. Forgets pods that are no longer suspects. */
  due(pods: Iterable<RunningPod>): readonly RunningPod[];
  /** Makes a pod due again after this time. Default: a pause that doubles. */
  later(pod: RunningPod, ms?: number): void;
}

interface Watched {
  nextAt: number;
  pauseMs: number;
}

/** @param serverNow the API server's wall clock, which dated the pods */
export function createSuspects(clock: Clock, serverNow: () => number): Suspects {
  let watched = new Map<string, Watched>();
  return {
    due: (pods) => {
      const now = clock.monotonic();
      const still = new Map<string, Watched>();
      const found: RunningPod[] = [];
      for (const pod of pods) {
        if (!isSuspect(pod)) continue;
        const known = watched.get(pod.uid) ?? { nextAt: now + graceMs, pauseMs: pause.firstMs };
        still.set(pod.uid, known);
        if (known.nextAt <= now && serverNow() - pod.createdAt >= graceMs) found.push(pod);
      }
      watched = still;
      return found;
    },
    later: (pod, ms) => {
      const known = watched.get(pod.uid);
      if (known === undefined) return;
      known.nextAt = clock.monotonic() + (ms ?? known.pauseMs);
      if (ms === undefined) known.pauseMs = Math.min(known.pauseMs * 2, pause.mostMs);
    },
  };
}

/** Whether a pod is not ready and has an owner. */
export function isSuspect({ ready, deleting, phase, owner, annotations }: RunningPod): boolean {
  if (ready || deleting || phase === 'Succeeded' || phase === 'Failed') return false;
  if (annotations?.['kubernetes.io/config.mirror'] !== undefined) return false;
  // Static pods are owned by their node.
  return owner !== undefined && owner.kind !== 'Node';
}
