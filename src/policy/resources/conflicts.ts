/**
 * Conflicts among the `PodPlacementConfig`s of one namespace: two of the same priority that can select the
 * same pod. Thousands of one priority cost millions of comparisons. A user of one namespace must not block
 * the whole program, so the work is done in slices and has a limit, which the result reports.
 */
import { isDeepStrictEqual } from 'node:util';
import { canOverlap, type Selector } from '../effective/label-selector.ts';
import { byPrecedence, type PodPlacement } from './placement.ts';

export interface ConflictsOptions {
  /** Limit of comparisons by `costOf`. Equal objects reach it at the same place, so that no status flaps. */
  readonly most?: number;
  /** Awaited after each slice of work, to yield to other work. */
  readonly turn: () => Promise<void> | undefined;
}

/** 2,000 selectors of one label each, all different: half a second of work altogether. */
const usualMost = 20_000_000;
/** Comparisons in one slice; well below 1 ms for selectors of one label. */
const slice = 4096;

export async function conflictsAmong(
  placements: readonly PodPlacement[],
  { turn, most = usualMost }: ConflictsOptions,
) {
  /** The first conflicting name, by the name of the later one. */
  const winners = new Map<string, string>();
  /** Names that were not compared with all before them, because there are too many. */
  const unknown = new Set<string>();
  let spent = 0;
  let sliced = 0;
  let priority: number | undefined;
  /** The first of this priority with each selector. A later one with the same selector adds nothing. */
  let firsts: { readonly placement: PodPlacement; readonly cost: number }[] = [];
  for (const later of placements.toSorted(byPrecedence)) {
    if (later.priority !== priority) firsts = [];
    priority = later.priority;
    const cost = costOf(later.selector);
    let winner: PodPlacement | undefined;
    for (const first of firsts) {
      const both = first.cost * cost;
      spent += both;
      if (spent > most) break;
      if (canOverlap(first.placement.selector, later.selector)) {
        winner = first.placement;
        break;
      }
      sliced += both;
      if (sliced < slice) continue;
      sliced = 0;
      await turn();
    }
    if (winner) winners.set(later.name, winner.name);
    else if (spent > most && firsts.length > 0) unknown.add(later.name);
    // What overlaps an earlier one may still be the first that overlaps a later one.
    if (!winner || !isDeepStrictEqual(winner.selector, later.selector))
      firsts.push({ placement: later, cost });
  }
  return { winners, unknown };
}

/** Labels and values in a comparison. */
function costOf(selector: Selector): number {
  return selector.reduce((sum, { values }) => sum + 1 + values.length, 1);
}
