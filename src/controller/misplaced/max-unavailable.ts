/**
 * How many pods of an owner are disrupted: pods that are being deleted, pods that the owner has not replaced or the scheduler has not placed
 * yet, and successors that are not ready. Computed from the cluster, so a new leader knows as much as the last one. Pure.
 */
import type { RunningPod } from '../caches/cached.ts';

export interface DisruptionInput {
  /** All pods of this owner that have a node. */
  readonly pods: readonly RunningPod[];
  /** How many the owner wants; `undefined`: not known. */
  readonly wanted: number | undefined;
  /** Uids of pods that this leader evicted in the last minutes. */
  readonly evicted: ReadonlySet<string>;
  /** How many of the missing pods can be due to evictions. A new leader cannot know that and says all. */
  readonly maxMissing: number;
  /** Pods created from then on are successors; `undefined`: none was evicted yet. Server time, milliseconds. */
  readonly since: number | undefined;
  /** Server time, milliseconds. */
  readonly now: number;
}

/** A successor that is not ready by then has other problems, and does not keep other pods from being evicted. */
const settleMs = 10 * 60_000;

export function disruptedPods({ pods, wanted, evicted, maxMissing, since, now }: DisruptionInput): number {
  const alive = pods.filter(({ phase }) => phase !== 'Succeeded' && phase !== 'Failed');
  const isGoing = ({ deleting, uid }: RunningPod): boolean => deleting || evicted.has(uid);
  const going = alive.filter(isGoing).length;
  // The owner counts a pod that is being deleted until its successor is there.
  const missing = Math.max(0, Math.min((wanted ?? pods.length) - alive.length, maxMissing));
  const settling = alive.filter(
    (pod) =>
      !isGoing(pod) &&
      !pod.ready &&
      since !== undefined &&
      pod.createdAt >= since &&
      now - pod.createdAt < settleMs,
  ).length;
  return going + missing + settling;
}

/** How many may be disrupted at the same time. */
export function maxUnavailable(total: number, percent: number): number {
  return Math.max(1, Math.floor((total * percent) / 100));
}
