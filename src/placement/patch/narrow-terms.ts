/**
 * Additions to the required terms of a gated pod. No term can be added to an existing pod,
 * and nothing can be removed from one (KEP-3838), so each term gets one list of expressions, ANDed after its last one:
 *
 * - A term with its own architecture constraint gets the expressions that hold for every architecture
 *   (`match`).
 * - Any other term gets one group of `terms`: architectures with equal node labels, and these labels. If its
 *   own expressions, or those of an earlier call, allow only one group, that is exact.
 * - If they allow more, one group is chosen, which matches the same nodes or fewer, never a wrong one: the
 *   group with the preferred architecture, else the one with most architectures.
 *
 * The additions of an earlier call stay. The record then names the old and the new ones together.
 */
import type { NodeSelectorTerm } from '../../kube/api/objects.ts';
import { isArchitectureKey, maxArchitectures } from '../../names/architecture.ts';
import type { Added, PlacementDecision } from '../decision.ts';
import {
  constrainsItself,
  isEmptyTerm,
  itemsBeyond,
  permits,
  sameExpression,
  withExpressions,
  type Expressions,
  type Terms,
} from '../pod/terms.ts';
import { extendedTermsOf, type ExtendedTerm } from '../record/own-fields.ts';

export interface NarrowedTerms {
  /** The present terms with what was added; the same list if that is nothing. */
  readonly extended: Terms;
  /** The additions of this call and of earlier ones, for the record. */
  readonly terms: readonly Expressions[];
  readonly match: Expressions;
  readonly required: readonly string[] | undefined;
}

type Before = Pick<Added, 'terms' | 'match' | 'lookalikes'>;

interface Choice {
  /** Index of the recorded list that the term has; -1: none. */
  readonly before: number;
  readonly group: number;
}

/** @param before the additions of an earlier call, if recorded */
export function narrowTerms(
  present: Terms,
  before: Added | undefined,
  added: Pick<Added, 'terms' | 'match'>,
  decision: Pick<PlacementDecision, 'preferred' | 'required'>,
): NarrowedTerms {
  const old: Before = before ?? { terms: [], match: [], lookalikes: [] };
  // If no architecture was required, `match` was added to all terms.
  const lists = old.terms.length > 0 || old.match.length === 0 ? old.terms : [old.match];
  const groups = added.terms;
  const rank = ranking(groups, decision);
  const parts = lists.length === 0 ? [] : extendedTermsOf(present, old);
  let choices = present.map((term, index) => {
    if (isEmptyTerm(term) || groups.length + old.terms.length === 0) return undefined;
    return choiceFor(term, parts[index], groups, rank);
  });
  // With many groups and many recorded lists, the record would need too many pairs.
  if (distinct(choices).length > maxArchitectures) {
    choices = choices.map((choice) => choice && { ...choice, group: rank[0] ?? -1 });
  }
  const match = beyond(added.match, old.match);
  const extended = present.map((term, index) => {
    const choice = choices[index];
    if (isEmptyTerm(term)) return term;
    const more =
      choice === undefined ? match : beyond(groups[choice.group] ?? added.match, lists[choice.before]);
    return withExpressions(term, more);
  });
  const used = distinct(choices);
  return {
    extended: extended.every((term, index) => term === present[index]) ? present : extended,
    terms: used
      .map(({ before: list, group }) => {
        const first = lists[list] ?? [];
        return [...first, ...beyond(groups[group] ?? added.match, first)];
      })
      .filter((list) => list.length > 0),
    match: [...old.match, ...match],
    required: usedArchitectures(groups, used, decision.required),
  };
}

/** @returns `undefined` for a term that gets `match` */
function choiceFor(
  term: NodeSelectorTerm,
  part: ExtendedTerm | undefined,
  groups: readonly Expressions[],
  rank: readonly number[],
): Choice | undefined {
  if (constrainsItself(part?.own ?? term)) return undefined;
  if (groups.length === 0 && part === undefined) return undefined;
  const possible = rank.find((group) => architecturesOf(groups[group]).some((name) => permits(term, name)));
  return { before: part?.copy ?? -1, group: possible ?? rank[0] ?? -1 };
}

/** Indexes, the best group first. */
function ranking(
  groups: readonly Expressions[],
  { preferred }: Pick<PlacementDecision, 'preferred'>,
): readonly number[] {
  const preference = preferred[0]?.architecture;
  const isPreferred = (names: readonly string[]): number =>
    Number(preference !== undefined && names.includes(preference));
  const ranked = groups.map((group, index) => ({ index, names: architecturesOf(group) }));
  ranked.sort((a, b) => isPreferred(b.names) - isPreferred(a.names) || b.names.length - a.names.length);
  return ranked.map(({ index }) => index);
}

function architecturesOf(group: Expressions | undefined): readonly string[] {
  return group?.find(({ key }) => isArchitectureKey(key))?.values ?? [];
}

function distinct(choices: readonly (Choice | undefined)[]): readonly Choice[] {
  const found = new Map<string, Choice>();
  for (const choice of choices) if (choice) found.set(`${choice.before} ${choice.group}`, choice);
  return [...found.values()].sort((a, b) => a.before - b.before || a.group - b.group);
}

function beyond(wanted: Expressions, present: Expressions | undefined): Expressions {
  return present ? itemsBeyond(present, wanted, sameExpression) : wanted;
}

function usedArchitectures(
  groups: readonly Expressions[],
  used: readonly Choice[],
  required: readonly string[] | undefined,
): readonly string[] | undefined {
  if (required === undefined || groups.length < 2 || used.length === 0) return required;
  const left = new Set(used.flatMap(({ group }) => architecturesOf(groups[group])));
  return required.filter((name) => left.has(name));
}
