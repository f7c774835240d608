/**
 * A pod's own scheduling fields, as they were before an earlier call. The rules read only these, so that a
 * second call decides like the first.
 */
import type {
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodSpec,
  PreferredSchedulingTerm,
} from '../../kube/api/objects.ts';
import { isArchitectureKey } from '../../names/architecture.ts';
import { hashText } from '../../names/hash.ts';
import { keys } from '../../names/keys.ts';
import type { Added, OwnFields, Recorded, Split, Widened } from '../decision.ts';
import {
  constrainsItself,
  isEmptyTerm,
  requiredTermsOf,
  sameExpression,
  sameTerm,
  withExpressions,
  type Terms,
  type Expressions,
} from '../pod/terms.ts';
import { sameToleration } from '../pod/expressions.ts';

export function ownFieldsOf(spec: PodSpec, recorded: Recorded | undefined): OwnFields {
  const terms = requiredTermsOf(spec);
  const preferred = spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  const tolerations = spec.tolerations ?? [];
  const nodeSelector = spec.nodeSelector ?? {};
  if (recorded === undefined) {
    return {
      nodeSelector,
      terms,
      preferred: { own: preferred, added: [] },
      tolerations: { own: tolerations, added: [] },
    };
  }
  const { added, widened } = recorded;
  const { [keys.architectureLabel]: label, ...others } = nodeSelector;
  const fields: OwnFields = {
    nodeSelector: label !== undefined && label === added.pinned ? others : nodeSelector,
    terms: withoutAdded(terms, added),
    preferred: split(preferred, added.preferred, samePreferred),
    tolerations: split(tolerations, added.tolerations, sameToleration),
  };
  if (widened === undefined) return fields;
  return namesArchitectures(fields) ? { ...fields, namedAgain: true } : withNames(fields, widened);
}

/** Takes the last occurrence of each recorded item: additions come after the pod's own items. */
function split<Item>(
  present: readonly Item[],
  recorded: readonly Item[],
  same: (a: Item, b: Item) => boolean,
): Split<Item> {
  const rest = [...present];
  const added: Item[] = [];
  for (const item of recorded) {
    const index = rest.findLastIndex((candidate) => same(candidate, item));
    if (index === -1) continue;
    rest.splice(index, 1);
    added.push(item);
  }
  return { own: rest, added };
}

export function samePreferred(a: PreferredSchedulingTerm, b: PreferredSchedulingTerm): boolean {
  return a.weight === b.weight && sameTerm(a.preference ?? {}, b.preference ?? {});
}

export interface ExtendedTerm {
  /** The pod's own part. */
  readonly own: NodeSelectorTerm;
  /** Index of the list in `Added.terms` that extends it: admission copies a term once for each list. */
  readonly copy: number;
}

/**
 * Removes the added expressions: the inverse of `patch/additions.ts`, even if a person has edited other parts
 * since.
 * @param terms as in the pod. A term without all of the added expressions is the pod's own
 * @returns `undefined` if all terms were added
 */
function withoutAdded(terms: Terms | undefined, added: Added): Terms | undefined {
  if (terms === undefined || (added.terms.length === 0 && added.match.length === 0)) return terms;
  const kept: NodeSelectorTerm[] = [];
  const extended = extendedTermsOf(terms, added);
  let previous: ExtendedTerm | undefined;
  for (const [index, term] of terms.entries()) {
    const found = extended[index];
    if (found === undefined) {
      previous = undefined;
      kept.push(term);
    } else if (isEmptyTerm(found.own)) {
      // A person removed the term's own expressions. Empty it would match no node, so it stays as it is.
      if (!added.made) kept.push(term);
    } else {
      const isCopy = previous && found.copy > previous.copy && sameTerm(found.own, previous.own);
      if (!isCopy) kept.push(found.own);
      previous = found;
    }
  }
  return kept.length === 0 && terms.length > 0 ? undefined : kept;
}

/** The own part of each term; `undefined` for a term that was not extended. */
export function extendedTermsOf(
  terms: Terms,
  added: Pick<Added, 'terms' | 'match' | 'lookalikes'>,
): readonly (ExtendedTerm | undefined)[] {
  const lookalikes = [...added.lookalikes];
  return terms.map((term) => takeLookalike(term, added, lookalikes) ?? extendedTermOf(term, added));
}

function extendedTermOf(
  term: NodeSelectorTerm,
  added: Pick<Added, 'terms' | 'match'>,
): ExtendedTerm | undefined {
  // The longest list first: what narrowed a term behind the gate may be a list of its own.
  const longestFirst = [...added.terms.entries()].sort(([, a], [, b]) => b.length - a.length);
  for (const [copy, expressions] of longestFirst) {
    const base = without(term, expressions);
    if (base && !constrainsItself(base)) return { own: base, copy };
  }
  const base = without(term, added.match);
  // `match` alone extends the terms with a constraint, and every term if there is nothing else to add.
  return base && (added.terms.length === 0 || constrainsItself(base)) ? { own: base, copy: 0 } : undefined;
}

function takeLookalike(
  term: NodeSelectorTerm,
  { match }: Pick<Added, 'match'>,
  lookalikes: string[],
): ExtendedTerm | undefined {
  if (lookalikes.length === 0) return undefined;
  const base = match.length === 0 ? term : without(term, match);
  const index = base ? lookalikes.indexOf(keyOf(base)) : -1;
  if (base === undefined || index === -1) return undefined;
  lookalikes.splice(index, 1);
  return { own: base, copy: 0 };
}

/** Keys of the pod's own terms that `withoutAdded` would mistake for extended ones. */
export function lookalikesAmong(
  terms: Terms | undefined,
  added: Pick<Added, 'terms' | 'match'>,
): readonly string[] {
  if (terms === undefined || added.terms.length === 0) return [];
  return terms
    .filter((term) => {
      if (!constrainsItself(term)) return false;
      const extended = extendedTermOf(withExpressions(term, added.match), added);
      return extended !== undefined && !sameTerm(extended.own, term);
    })
    .map(keyOf);
}

/** A short hash of a term's content. */
function keyOf({ matchExpressions, matchFields }: NodeSelectorTerm): string {
  const list = (requirements: Expressions | null | undefined): unknown =>
    (requirements ?? []).map(({ key, operator, values }) => [key, operator, values ?? []]);
  return hashText([JSON.stringify([list(matchExpressions), list(matchFields)])]);
}

/** The term without the last occurrence of each expression; `undefined` if one is missing. */
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

/** Whether it names an architecture that `constraints: widen` removes, and `withNames` puts back. */
export function isNaming({ key, operator }: NodeSelectorRequirement): boolean {
  return isArchitectureKey(key) && operator === 'In';
}

export function namesArchitectures({ nodeSelector, terms }: OwnFields): boolean {
  return (
    Object.keys(nodeSelector).some(isArchitectureKey) ||
    (terms?.some(({ matchExpressions }) => matchExpressions?.some(isNaming)) ?? false)
  );
}

/** The pod's fields without what `widened` lists. A term that named nothing else matches every node then. */
export function withoutNames(fields: OwnFields, { expressions }: Widened): OwnFields {
  const others = Object.entries(fields.nodeSelector).filter(([key]) => !isArchitectureKey(key));
  const nodeSelector = Object.fromEntries(others);
  if (expressions.length === 0) return { ...fields, nodeSelector };
  const terms = fields.terms?.map(({ matchExpressions, ...rest }) => {
    const left = matchExpressions?.filter((each) => !isNaming(each)) ?? [];
    return left.length === 0 ? rest : { ...rest, matchExpressions: left };
  });
  return { ...fields, nodeSelector, terms: terms?.some(isEmptyTerm) ? undefined : terms };
}

/** The inverse of `withoutNames`. */
export function withNames(fields: OwnFields, { nodeSelector, expressions }: Widened): OwnFields {
  const terms = fields.terms?.map((term) => (isEmptyTerm(term) ? term : withExpressions(term, expressions)));
  return {
    ...fields,
    nodeSelector: { ...fields.nodeSelector, ...nodeSelector },
    terms: expressions.length === 0 ? fields.terms : (terms ?? [{ matchExpressions: expressions }]),
  };
}
