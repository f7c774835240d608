/**
 * Pods that are worth a look: not ready, although they had time to become so, and owned by a controller that would make
 * another one (a DaemonSet for the same node, `daemon.ts`). Each is looked at again after a pause that doubles, because its facts may come late; a crash loop of an
 * application's own must not cost a look at the registry every few seconds.
 */
import type { Clock } from '../../async/clock.ts';
import type { RunningPod } from '../caches/caches.ts';

/** What a pod gets to become ready, or to become ready again, before anything is thought of it. */
export const graceMs = 30_000;
const lookAgain = { firstMs: 15_000, mostMs: 10 * 60_000 };

export interface Suspects {
  /** Those whose time has come. What is not suspect any more is forgotten. */
  due(pods: Iterable<RunningPod>): readonly RunningPod[];
  /** Has a pod looked at again after this time at the earliest; by default after a pause that doubles. */
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
        const known = watched.get(pod.uid) ?? { nextAt: now + graceMs, pauseMs: lookAgain.firstMs };
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
      if (ms === undefined) known.pauseMs = Math.min(known.pauseMs * 2, lookAgain.mostMs);
    },
  };
}

/** Whether a pod may be one that its owner would replace, or has to be kept from making. */
export function isSuspect({ ready, deleting, phase, owner, annotations }: RunningPod): boolean {
  if (ready || deleting || phase === 'Succeeded' || phase === 'Failed') return false;
  if (annotations?.['kubernetes.io/config.mirror'] !== undefined) return false;
  // Static pods are owned by their node.
  return owner !== undefined && owner.kind !== 'Node';
}
