/**
 * How many pods of an owner are on the move, told from what the cluster shows, so that a new leader knows as much as the
 * one before: pods that are going, pods that the owner still has to make or the scheduler to place, and successors that
 * are not ready yet. Pure.
 */
import type { RunningPod } from '../caches/caches.ts';

export interface ShareInput {
  /** All of this owner with a node. */
  readonly pods: readonly RunningPod[];
  /** How many the owner wants; `undefined`: not known. */
  readonly wanted: number | undefined;
  /** Uids of pods that were evicted in the last minutes by this leader. */
  readonly evicted: ReadonlySet<string>;
  /** How many of those that the owner lacks can be our doing; a new leader cannot know and says all. */
  readonly lackingOurs: number;
  /** Pods created from then on are successors; `undefined`: none was moved yet. Server time, milliseconds. */
  readonly movingSince: number | undefined;
  /** Server time, milliseconds. */
  readonly now: number;
}

/** A successor that is not ready by then has troubles of its own, and does not keep others from being moved. */
const settleMs = 10 * 60_000;

/** How many are on the move now. */
export function onTheMove({ pods, wanted, evicted, lackingOurs, movingSince, now }: ShareInput): number {
  const alive = pods.filter(({ phase }) => phase !== 'Succeeded' && phase !== 'Failed');
  const going = alive.filter(({ deleting, uid }) => deleting || evicted.has(uid)).length;
  const staying = alive.length - going;
  // Those that go are among the wanted ones until their successors are there.
  const lacking = Math.max(0, Math.min((wanted ?? pods.length) - staying - going, lackingOurs));
  const settling = alive.filter(
    ({ deleting, uid, ready, createdAt }) =>
      !deleting &&
      !evicted.has(uid) &&
      !ready &&
      movingSince !== undefined &&
      createdAt >= movingSince &&
      now - createdAt < settleMs,
  ).length;
  return going + lacking + settling;
}

/** How many may be on the move at the same time. */
export function mayMove(total: number, sharePercent: number): number {
  return Math.max(1, Math.floor((total * sharePercent) / 100));
}
