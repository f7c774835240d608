/**
 * Which `PodPlacementConfig` comes first: the one with the higher priority; of two with the same priority the older one,
 * which people have come to rely on; of two of the same second the one whose name sorts first. Two with the same priority
 * that can select the same pod are a conflict: the order still holds, and the one that comes second says so in its status.
 */
import { canOverlap } from '../label-selector.ts';
import type { PodPlacement } from './placement.ts';

/** For `sort`: what comes first wins. */
export function byPrecedence(a: PodPlacement, b: PodPlacement): number {
  return b.priority - a.priority || a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1);
}

/**
 * The conflicts among the `PodPlacementConfig`s of one namespace.
 * @returns by the name of the one that comes second, the name of the first that comes before it
 */
export function conflictsAmong(placements: readonly PodPlacement[]): ReadonlyMap<string, string> {
  const conflicts = new Map<string, string>();
  const sorted = placements.toSorted(byPrecedence);
  let start = 0;
  for (const [index, later] of sorted.entries()) {
    if (sorted[start]?.priority !== later.priority) start = index;
    const winner = sorted.slice(start, index).find((earlier) => canOverlap(earlier.selector, later.selector));
    if (winner) conflicts.set(later.name, winner.name);
  }
  return conflicts;
}
