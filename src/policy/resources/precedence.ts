/**
 * The order of `PodPlacementConfig`s: higher priority first, then the older one, then by name. Two of the same priority that
 * can select the same pod are a conflict (`conflicts.ts`): the order still applies, and the status of the second one reports it.
 */
import type { PodPlacement } from './placement.ts';

/** For `sort`: the first one wins. */
export function byPrecedence(a: PodPlacement, b: PodPlacement): number {
  return b.priority - a.priority || a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1);
}
