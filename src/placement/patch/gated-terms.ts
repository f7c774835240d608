/**
 * What the required terms of a gated pod get. At admission a term is multiplied where the node labels differ by
 * architecture; the terms of a pod that exists can neither become more nor lose anything (KEP-3838), so each gets one list
 * of expressions, ANDed after its last one:
 *
 * - A term that constrains its architecture itself gets what holds for every architecture (`match`).
 * - Any other gets one group of `terms`: the architectures that have the same node labels, with these. Where its own
 *   expressions, or those of an earlier call, leave only one group possible, that is exact.
 * - Where more are possible, one is chosen, the same nodes or fewer, never a wrong one: the one with the preferred
 *   architecture, then the one with most nodes, then the one with most architectures.
 *
 * What an earlier call added stays where it is; the record then names the old and the new together.
 */
import type { NodeSelectorRequirement, NodeSelectorTerm } from '../../kube/api/objects.ts';
import { isArchitectureKey, maxArchitectures } from '../../names/architecture.ts';
import type { Added, PlacementDecision } from '../decision.ts';
import { constrainsItself, isEmptyTerm, ownTermsOf, permits, sameExpression } from '../pod/terms.ts';
import type { OwnTerm } from '../pod/terms.ts';

type Expressions = readonly NodeSelectorRequirement[];

export interface GatedTerms {
  /** By index of the present terms. */
  readonly appended: readonly Expressions[];
  /** For the record: the lists that were added by now, by this call and those before. */
  readonly terms: readonly Expressions[];
  readonly match: Expressions;
  /** The architectures that are left of the decision's; `undefined` where it requires none. */
  readonly required: readonly string[] | undefined;
}

/** How many nodes of an architecture there are, where that is known. */
export type NodesOf = (architecture: string) => number;

type Before = Pick<Added, 'terms' | 'match' | 'lookalikes'>;

interface Choice {
  /** Which of the recorded lists the term holds; -1: none. */
  readonly before: number;
  readonly group: number;
}

/**
 * Finds what each term gets.
 * @param present the terms as they stand
 * @param before what an earlier call added, where that is known
 * @param added what the decision wants to have added to the pod's own part
 */
export function gatedTerms(
  present: readonly NodeSelectorTerm[],
  before: Added | undefined,
  added: Pick<Added, 'terms' | 'match'>,
  decision: Pick<PlacementDecision, 'preferred' | 'required'>,
  nodesOf: NodesOf = () => 0,
): GatedTerms {
  const old: Before = before ?? { terms: [], match: [], lookalikes: [] };
  // Without a requirement on the architecture, `match` is what was added to all terms.
  const lists = old.terms.length > 0 || old.match.length === 0 ? old.terms : [old.match];
  const groups = added.terms;
  const rank = ranking(groups, decision, nodesOf);
  const parts = lists.length === 0 ? [] : ownTermsOf(present, old);
  let choices = present.map((term, index) => {
    if (isEmptyTerm(term) || groups.length + old.terms.length === 0) return undefined;
    return choiceFor(term, parts[index], groups, rank);
  });
  // Only where many groups meet many recorded lists; the record has no room for each pair of them.
  if (distinct(choices).length > maxArchitectures) {
    choices = choices.map((choice) => choice && { ...choice, group: rank[0] ?? -1 });
  }
  const match = beyond(added.match, old.match);
  const appended = present.map((term, index) => {
    const choice = choices[index];
    if (isEmptyTerm(term)) return [];
    return choice === undefined ? match : beyond(groups[choice.group] ?? added.match, lists[choice.before]);
  });
  const used = distinct(choices);
  return {
    appended,
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

/** @returns `undefined` for a term that is given what holds for every architecture */
function choiceFor(
  term: NodeSelectorTerm,
  part: OwnTerm | undefined,
  groups: readonly Expressions[],
  rank: readonly number[],
): Choice | undefined {
  if (constrainsItself(part?.base ?? term)) return undefined;
  if (groups.length === 0 && part === undefined) return undefined;
  const possible = rank.find((group) => architecturesOf(groups[group]).some((name) => permits(term, name)));
  return { before: part?.copy ?? -1, group: possible ?? rank[0] ?? -1 };
}

/** Indexes of the groups, the best first. */
function ranking(
  groups: readonly Expressions[],
  { preferred }: Pick<PlacementDecision, 'preferred'>,
  nodesOf: NodesOf,
): readonly number[] {
  const wish = preferred[0]?.architecture;
  const ranked = groups.map((group, index) => {
    const names = architecturesOf(group);
    const isPreferred = wish !== undefined && names.includes(wish);
    const nodes = names.reduce((sum, name) => sum + nodesOf(name), 0);
    return { index, isPreferred, nodes, count: names.length };
  });
  ranked.sort(
    (a, b) =>
      Number(b.isPreferred) - Number(a.isPreferred) ||
      b.nodes - a.nodes ||
      b.count - a.count ||
      a.index - b.index,
  );
  return ranked.map(({ index }) => index);
}

function architecturesOf(group: Expressions | undefined): readonly string[] {
  return group?.find(({ key, operator }) => isArchitectureKey(key) && operator === 'In')?.values ?? [];
}

/** Each pair once, in the order of the recorded lists, on which telling copies of a term apart depends. */
function distinct(choices: readonly (Choice | undefined)[]): readonly Choice[] {
  const found = new Map<string, Choice>();
  for (const choice of choices) if (choice) found.set(`${choice.before} ${choice.group}`, choice);
  return [...found.values()].sort((a, b) => a.before - b.before || a.group - b.group);
}

/** What is not there yet, the number of occurrences counted. */
function beyond(wanted: Expressions, present: Expressions | undefined): Expressions {
  if (present === undefined || present.length === 0) return wanted;
  return wanted.filter((expression) => !present.some((other) => sameExpression(other, expression)));
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
