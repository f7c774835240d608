/**
 * Which `PodPlacementConfig` comes first: the one with the higher priority; of two with the same priority the older one,
 * which people have come to rely on; of two of the same second the one whose name sorts first. Two with the same priority
 * that can select the same pod are a conflict (`conflicts.ts`): the order still holds, and the one that comes second says so in
 * its status.
 */
import type { PodPlacement } from './placement.ts';

/** For `sort`: what comes first wins. */
export function byPrecedence(a: PodPlacement, b: PodPlacement): number {
  return b.priority - a.priority || a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1);
}
