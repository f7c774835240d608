/** The moves of one leader: how many of a workload are under way, and when the next eviction may be asked for. */
import type { RunningPod } from '../caches/caches.ts';
import type { Leading } from '../leadership/leading.ts';
import { mayMove, onTheMove } from './max-unavailable.ts';
import type { Workload } from '../scope/workload.ts';

export interface Evictions {
  /** Pods of an owner that are there and going. */
  going(ownerUid: string): number;
  /** Whether another pod of the workload may be moved now. */
  hasRoom(pod: RunningPod, workload: Workload, movingSince: number | undefined): boolean;
  moved(pod: RunningPod): void;
  /** An eviction without a clear answer: it counts as one until the pod turns out to be there still. */
  perhapsMoved(pod: RunningPod): void;
  /** Takes the next turn for an eviction. @returns milliseconds to wait for it */
  turn(): number;
}

/** What is missing of a workload so long after an eviction is missing for another reason. */
const rememberMs = 10 * 60_000;
/** A new leader cannot know which of the missing pods were evicted; its predecessor's are settled by then. */
const unsureMs = 5 * 60_000;
/** What an eviction did is seen in the cache by then. */
const seenMs = 30_000;
/** Owners by workload are found by evictions, a few in a minute. */
const maxWorkloads = 1000;

interface Evicted {
  readonly owner: string;
  readonly at: number;
  readonly isSure: boolean;
}

export function createEvictions({ caches, clock, serverNow, configuration }: Leading): Evictions {
  const startedAt = clock.monotonic();
  /** By uid of the pod. */
  let evicted = new Map<string, Evicted>();
  /** By uid of the workload: what its owners want, by their uid. */
  const owners = new Map<string, Map<string, number | undefined>>();
  let nextTurn = startedAt;

  function ownersOf(pod: RunningPod, { top, wanted }: Workload): ReadonlyMap<string, number | undefined> {
    const known = owners.get(top.uid) ?? new Map<string, number | undefined>();
    known.set(pod.owner?.uid ?? '', wanted);
    owners.delete(top.uid);
    owners.set(top.uid, known);
    const oldest = owners.size > maxWorkloads ? owners.keys().next().value : undefined;
    if (oldest !== undefined) owners.delete(oldest);
    return known;
  }

  function remember({ uid, owner }: RunningPod, isSure: boolean): void {
    evicted.set(uid, { owner: owner?.uid ?? '', at: clock.monotonic(), isSure });
  }

  /** The pod in question was just read: it is there. Of the others the cache knows by now. */
  function forgetWhatDidNotHappen(now: number, inQuestion: RunningPod): void {
    const open = [...evicted].filter(([, { isSure }]) => !isSure);
    if (open.length === 0) return;
    const there = new Set(
      [...caches.runningPods.values()].flatMap((each) => (each.deleting ? [] : each.uid)),
    );
    for (const [uid, { at }] of open)
      if (uid === inQuestion.uid || (now - at >= seenMs && there.has(uid))) evicted.delete(uid);
  }

  return {
    going: (ownerUid) =>
      [...caches.runningPods.values()].filter(
        ({ owner, deleting, uid }) => owner?.uid === ownerUid && (deleting || evicted.has(uid)),
      ).length,
    hasRoom: (pod, workload, movingSince) => {
      const now = clock.monotonic();
      evicted = new Map([...evicted].filter(([, { at }]) => now - at < rememberMs));
      forgetWhatDidNotHappen(now, pod);
      const isUnsure = now - startedAt < unsureMs && movingSince !== undefined;
      const byOwner = ownersOf(pod, workload);
      const podsOf = podsByOwner(caches.runningPods.values(), byOwner);
      let moving = 0;
      let total = 0;
      for (const [owner, wanted] of byOwner) {
        const pods = podsOf.get(owner) ?? [];
        const ours = [...evicted].filter(([, each]) => each.owner === owner);
        total += wanted ?? pods.length;
        moving += onTheMove({
          pods,
          wanted,
          evicted: new Set(ours.map(([uid]) => uid)),
          lackingOurs: isUnsure ? Number.POSITIVE_INFINITY : ours.length,
          movingSince,
          now: serverNow(),
        });
      }
      return moving < mayMove(total, configuration().misplacedPodsShare);
    },
    moved: (pod) => remember(pod, true),
    perhapsMoved: (pod) => remember(pod, false),
    turn: () => {
      const now = clock.monotonic();
      const at = Math.max(now, nextTurn);
      nextTurn = at + 60_000 / configuration().evictionsPerMinute;
      return at - now;
    },
  };
}

function podsByOwner(
  pods: Iterable<RunningPod>,
  wanted: ReadonlyMap<string, unknown>,
): ReadonlyMap<string, readonly RunningPod[]> {
  const found = new Map<string, RunningPod[]>();
  for (const pod of pods) {
    const uid = pod.owner?.uid;
    if (uid === undefined || !wanted.has(uid)) continue;
    const list = found.get(uid) ?? [];
    found.set(uid, list);
    list.push(pod);
  }
  return found;
}
