/**
 * Additions to the required terms of a pod at admission. Terms are ORed, so a further term would loosen a person's
 * requirement. Instead the additions are ANDed into every term. If the node labels differ by architecture, a term is copied
 * once for each group. Empty terms stay empty: any expression would make them match.
 */
import type { NodeSelectorRequirement, NodeSelectorTerm } from '../../kube/api/objects.ts';
import type { Added } from '../decision.ts';
import { constrainsItself, isEmptyTerm, sameList, sameTerm, withExpressions } from '../pod/terms.ts';

type Terms = readonly NodeSelectorTerm[];

export type TermsChange =
  /** Expressions to append, by index of the present terms. */
  | { readonly kind: 'append'; readonly lists: readonly (readonly NodeSelectorRequirement[])[] }
  /** Other terms, or terms in a pod without any. */
  | { readonly kind: 'set'; readonly terms: Terms }
  /** All present terms were additions that no longer apply. */
  | { readonly kind: 'remove' };

const unchanged: TermsChange = { kind: 'append', lists: [] };

/** @param own the pod's own terms; the same list as `present` if there are no additions of an earlier call */
export function extendTerms(
  present: Terms | undefined,
  own: Terms | undefined,
  added: Pick<Added, 'terms' | 'match'>,
): TermsChange {
  const terms = extended(own, added);
  if (terms === undefined) return present === undefined ? unchanged : { kind: 'remove' };
  if (present === undefined) return { kind: 'set', terms };
  if (sameList(present, terms, sameTerm)) return unchanged;
  if (own !== present || terms.length !== present.length) return { kind: 'set', terms };
  return { kind: 'append', lists: present.map((term) => copiesFor(term, added)[0] ?? []) };
}

function extended(own: Terms | undefined, added: Pick<Added, 'terms' | 'match'>): Terms | undefined {
  if (own !== undefined) {
    if (added.terms.length === 0 && added.match.length === 0) return own;
    return own.flatMap((term) => copiesFor(term, added).map((list) => withExpressions(term, list)));
  }
  if (added.terms.length > 0) return added.terms.map((expressions) => ({ matchExpressions: expressions }));
  return added.match.length > 0 ? [{ matchExpressions: added.match }] : undefined;
}

/** The expressions to add to a term, one list for each copy of it. */
function copiesFor(
  term: NodeSelectorTerm,
  added: Pick<Added, 'terms' | 'match'>,
): readonly (readonly NodeSelectorRequirement[])[] {
  if (isEmptyTerm(term)) return [[]];
  return added.terms.length === 0 || constrainsItself(term) ? [added.match] : added.terms;
}
