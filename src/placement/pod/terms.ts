/**
 * Required node affinity terms. Terms are ORed, the expressions inside one are ANDed, so a requirement goes into every
 * term: as a further term it would loosen what the person wrote. An empty term, and an empty list of terms, matches no
 * node (kubernetes component-helpers nodeaffinity.go); both stay as they are, since any expression would make them match.
 *
 * What counts as an architecture constraint: `In` on an architecture label, which chooses architectures;
 * `DoesNotExist`, which asks for nodes without one; and `matchFields` with `metadata.name In`, which chooses the node.
 * `NotIn`, `Exists`, `Gt` and `Lt` only leave something out: the term could still match a node that cannot run the
 * images, so ours is ANDed beside them.
 */
import type { NodeSelectorRequirement, NodeSelectorTerm } from '../../kube/api/objects.ts';
import { isArchitectureKey } from '../../names/architecture.ts';
import { hashText } from '../record/hash.ts';
import type { Added } from '../decision.ts';

type Terms = readonly NodeSelectorTerm[] | undefined;
type Expressions = readonly NodeSelectorRequirement[];

/** Whether a term matches nothing because it says nothing. */
export function isEmptyTerm(term: NodeSelectorTerm): boolean {
  return !term.matchExpressions?.length && !term.matchFields?.length;
}

/** Whether a term chooses one node by its name. */
export function pinsNode(term: NodeSelectorTerm): boolean {
  return term.matchFields?.some((field) => field.key === 'metadata.name' && field.operator === 'In') ?? false;
}

/** Whether a term chooses its architecture (or its very node) itself. */
export function constrainsItself(term: NodeSelectorTerm): boolean {
  return (
    pinsNode(term) ||
    (term.matchExpressions?.some(
      ({ key, operator }) => isArchitectureKey(key) && (operator === 'In' || operator === 'DoesNotExist'),
    ) ??
      false)
  );
}

/** Whether the term's own expressions on the architecture let a node of this architecture through. */
export function permits(term: NodeSelectorTerm, architecture: string): boolean {
  if (isEmptyTerm(term)) return false;
  for (const { key, operator, values } of term.matchExpressions ?? []) {
    if (!isArchitectureKey(key)) continue;
    if (operator === 'Exists') continue;
    if (operator === 'In' && values?.includes(architecture)) continue;
    if (operator === 'NotIn' && !values?.includes(architecture)) continue;
    return false;
  }
  return true;
}

/**
 * ANDs our expressions into required terms.
 * @param terms the pod's own; `undefined`: it has no required node affinity
 * @returns the terms to have; the same list where nothing changes
 */
export function extendTerms(terms: Terms, added: Pick<Added, 'terms' | 'match'>): Terms {
  if (terms === undefined) {
    if (added.terms.length > 0) return added.terms.map((expressions) => ({ matchExpressions: expressions }));
    return added.match.length > 0 ? [{ matchExpressions: added.match }] : undefined;
  }
  if (added.terms.length === 0 && added.match.length === 0) return terms;
  return terms.flatMap((term) => copiesFor(term, added).map((expressions) => extend(term, expressions)));
}

/** The lists of expressions that a term is to be extended by, one for each copy of it. */
export function copiesFor(
  term: NodeSelectorTerm,
  added: Pick<Added, 'terms' | 'match'>,
): readonly Expressions[] {
  if (isEmptyTerm(term)) return [[]];
  return added.terms.length === 0 || constrainsItself(term) ? [added.match] : added.terms;
}

function extend(term: NodeSelectorTerm, expressions: Expressions): NodeSelectorTerm {
  if (expressions.length === 0) return term;
  return { ...term, matchExpressions: [...(term.matchExpressions ?? []), ...expressions] };
}

/**
 * Takes our expressions out again: the inverse of `extendTerms`, also where a person edited other things since.
 * @param terms as they stand in the pod
 * @param added what was added; a term that does not hold all of it was not extended by us and stays
 * @returns the pod's own terms; `undefined` where all of them were made by us
 */
export function withoutAdded(terms: Terms, added: Added): Terms {
  if (terms === undefined || (added.terms.length === 0 && added.match.length === 0)) return terms;
  const kept: NodeSelectorTerm[] = [];
  const parts = ownTermsOf(terms, added);
  let previous: OwnTerm | undefined;
  for (const [index, term] of terms.entries()) {
    const found = parts[index];
    if (found === undefined) {
      previous = undefined;
      kept.push(term);
    } else if (isEmptyTerm(found.base)) {
      // Whose own expressions were taken away by a person: what is left of ours is theirs now.
      if (!added.made) kept.push(term);
    } else {
      const copied = previous && found.copy > previous.copy && sameTerm(found.base, previous.base);
      if (!copied) kept.push(found.base);
      previous = found;
    }
  }
  return kept.length === 0 && terms.length > 0 ? undefined : kept;
}

export interface OwnTerm {
  readonly base: NodeSelectorTerm;
  /** Which of the copies of the pod's term this is. */
  readonly copy: number;
}

/** What is the pod's own in each of its terms; `undefined` for a term that does not hold what was added. */
export function ownTermsOf(
  terms: readonly NodeSelectorTerm[],
  added: Pick<Added, 'terms' | 'match' | 'lookalikes'>,
): readonly (OwnTerm | undefined)[] {
  const lookalikes = [...added.lookalikes];
  return terms.map((term) => takeLookalike(term, added, lookalikes) ?? ownPartOf(term, added));
}

function ownPartOf(term: NodeSelectorTerm, added: Pick<Added, 'terms' | 'match'>): OwnTerm | undefined {
  for (const [copy, expressions] of added.terms.entries()) {
    const base = without(term, expressions);
    if (base && !constrainsItself(base)) return { base, copy };
  }
  const base = without(term, added.match);
  // Only such a term, or any where nothing else was added, is given `match` alone.
  return base && (added.terms.length === 0 || constrainsItself(base)) ? { base, copy: 0 } : undefined;
}

function takeLookalike(
  term: NodeSelectorTerm,
  { match }: Pick<Added, 'match'>,
  lookalikes: string[],
): OwnTerm | undefined {
  if (lookalikes.length === 0) return undefined;
  const base = match.length === 0 ? term : without(term, match);
  const index = base ? lookalikes.indexOf(keyOf(base)) : -1;
  if (base === undefined || index === -1) return undefined;
  lookalikes.splice(index, 1);
  return { base, copy: 0 };
}

/** Keys of the own terms that `withoutAdded` could not tell from those that we extend. */
export function lookalikesAmong(terms: Terms, added: Pick<Added, 'terms' | 'match'>): readonly string[] {
  if (terms === undefined || added.terms.length === 0) return [];
  return terms
    .filter((term) => constrainsItself(term))
    .filter((term) => {
      const part = ownPartOf(extend(term, added.match), added);
      return part === undefined ? false : !sameTerm(part.base, term);
    })
    .map(keyOf);
}

/** A short stand-in for a term's content. */
function keyOf({ matchExpressions, matchFields }: NodeSelectorTerm): string {
  const list = (requirements: Expressions | null | undefined): unknown =>
    (requirements ?? []).map(({ key, operator, values }) => [key, operator, values ?? []]);
  return hashText([JSON.stringify([list(matchExpressions), list(matchFields)])]);
}

/** The term without these expressions, the last occurrence of each; `undefined` where one is missing. */
function without(term: NodeSelectorTerm, expressions: Expressions): NodeSelectorTerm | undefined {
  if (expressions.length === 0) return undefined;
  const left = [...(term.matchExpressions ?? [])];
  for (const expression of expressions.toReversed()) {
    const index = left.findLastIndex((candidate) => sameExpression(candidate, expression));
    if (index === -1) return undefined;
    left.splice(index, 1);
  }
  const { matchExpressions: _, ...rest } = term;
  return left.length === 0 ? rest : { ...term, matchExpressions: left };
}

export function sameTerm(a: NodeSelectorTerm, b: NodeSelectorTerm): boolean {
  return (
    sameList(a.matchExpressions ?? [], b.matchExpressions ?? [], sameExpression) &&
    sameList(a.matchFields ?? [], b.matchFields ?? [], sameExpression)
  );
}

export function sameExpression(a: NodeSelectorRequirement, b: NodeSelectorRequirement): boolean {
  return (
    a.key === b.key &&
    a.operator === b.operator &&
    sameList(a.values ?? [], b.values ?? [], (left, right) => left === right)
  );
}

export function sameList<Item>(
  a: readonly Item[],
  b: readonly Item[],
  same: (left: Item, right: Item) => boolean,
): boolean {
  return a === b || (a.length === b.length && a.every((item, index) => same(item, b[index] as Item)));
}
