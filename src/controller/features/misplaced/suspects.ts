/**
 * Pods to check: not ready in time, with a controller that would replace them. The pause between checks
 * doubles: facts may come late, but a crash loop must not cost a registry request every few seconds.
 */
import { hasEnded, type RunningPod } from '../../state/cached.ts';
import type { LeaderContext } from '../../lead/feature.ts';

/** How long a pod may take to become ready, for the first time or again. */
const graceMs = 30_000;
const pause = { firstMs: 15_000, mostMs: 10 * 60_000 };

interface CheckTimes {
  nextAt: number;
  pauseMs: number;
  isMisplaced: boolean;
}

export class Suspects {
  readonly #leader: Pick<LeaderContext, 'clock' | 'serverNow'>;
  #watched = new Map<string, CheckTimes>();

  constructor(leader: Pick<LeaderContext, 'clock' | 'serverNow'>) {
    this.#leader = leader;
  }

  /** The suspects that are due. Forgets pods that are no longer suspects. */
  due(pods: Iterable<RunningPod>): readonly RunningPod[] {
    const { clock, serverNow } = this.#leader;
    const now = clock.monotonic();
    const suspects = [...pods].filter(isSuspect).map((pod) => {
      const first = { nextAt: now + graceMs, pauseMs: pause.firstMs, isMisplaced: false };
      return [pod, this.#watched.get(pod.uid) ?? first] as const;
    });
    this.#watched = new Map(suspects.map(([{ uid }, known]) => [uid, known]));
    const isDue = (pod: RunningPod, { nextAt }: CheckTimes): boolean =>
      nextAt <= now && serverNow() - pod.createdAt >= graceMs;
    return suspects.filter(([pod, known]) => isDue(pod, known)).map(([pod]) => pod);
  }

  /** How many of them are misplaced, as far as they were checked. */
  get misplaced(): number {
    return this.#watched
      .values()
      .filter(({ isMisplaced }) => isMisplaced)
      .toArray().length;
  }

  mark({ uid }: RunningPod, isMisplaced: boolean): void {
    const known = this.#watched.get(uid);
    if (known) known.isMisplaced = isMisplaced;
  }

  /** Makes a pod due again after this time. Default: a pause that doubles. */
  later({ uid }: RunningPod, ms?: number): void {
    const known = this.#watched.get(uid);
    if (known === undefined) return;
    known.nextAt = this.#leader.clock.monotonic() + (ms ?? known.pauseMs);
    if (ms === undefined) known.pauseMs = Math.min(known.pauseMs * 2, pause.mostMs);
  }
}

export function isSuspect(pod: RunningPod): boolean {
  const { owner, annotations } = pod;
  if (pod.ready || pod.deleting || hasEnded(pod)) return false;
  if (annotations?.['kubernetes.io/config.mirror'] !== undefined) return false;
  // Static pods are owned by their node.
  return owner !== undefined && owner.kind !== 'Node';
}
