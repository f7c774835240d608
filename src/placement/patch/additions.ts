/** The exact additions of a decision to one pod. The patch writes them, and the annotation records them. */
import type { NodeSelectorTerm } from '../../kube/api/objects.ts';
import { noArchitecture } from '../../names/architecture.ts';
import { own as ofArchitecture } from '../../names/values.ts';
import type { Added, OwnFields, PlacementDecision } from '../decision.ts';
import { architectureIn, hostnameNotIn, labelExpressions, preferredTerm } from '../pod/expressions.ts';
import {
  constrainsItself,
  isEmptyTerm,
  itemsBeyond,
  permitsSome,
  sameExpression,
  sameList,
  sameTerm,
  withExpressions,
  type Expressions,
  type Terms,
} from '../pod/terms.ts';
import { lookalikesAmong } from '../record/own-fields.ts';

export function additionsOf(decision: PlacementDecision, fields: OwnFields): Added {
  const pinned = pinOf(decision, fields);
  const { excludedNodes } = decision;
  const exclusion = hostnameNotIn(excludedNodes);
  const groups = expressionGroups(decision, pinned !== undefined);
  const terms = exclusion.length === 0 ? groups : groups.map((list) => [...list, ...exclusion]);
  // A term that is made for a gated pod cannot be copied later. If its architectures are not known, and may need
  // different node labels, the controller adds the labels when it removes the gate.
  const isTooEarly = decision.gate && decision.required === undefined && fields.terms === undefined;
  const labels = labelExpressions(isTooEarly ? {} : decision.nodeLabels);
  const match = exclusion.length === 0 ? labels : [...labels, ...exclusion];
  const soft = decision.preferenceMode === 'soft' ? decision.preferred : [];
  return {
    terms,
    match,
    excludedNodes,
    lookalikes: lookalikesAmong(fields.terms, { terms, match }),
    made: fields.terms === undefined && (terms.length > 0 || match.length > 0),
    preferred: soft.map(({ architecture, weight }) => preferredTerm(architecture, weight)),
    tolerations: decision.tolerations,
    pinned,
  };
}

export const nothingAdded: Added = Object.freeze({
  terms: [],
  match: [],
  excludedNodes: [],
  lookalikes: [],
  made: false,
  preferred: [],
  tolerations: [],
  pinned: undefined,
});

export function addsNothing({ terms, match, preferred, tolerations, pinned }: Added): boolean {
  return pinned === undefined && [terms, match, preferred, tolerations].every((list) => list.length === 0);
}

/**
 * A hard preference pins by nodeSelector, which is ANDed to every required term. If a term chooses another
 * architecture as an alternative, the terms without a constraint are narrowed instead.
 */
function pinOf(decision: PlacementDecision, { terms }: OwnFields): string | undefined {
  const preferred = decision.preferred[0];
  if (decision.preferenceMode !== 'hard' || preferred === undefined) return undefined;
  return terms?.some(constrainsItself) ? undefined : preferred.architecture;
}

/**
 * The expressions that each required term needs, a list for each group of architectures with equal node
 * labels.
 * @param isPinned true if the nodeSelector names the architecture
 */
export function expressionGroups(
  decision: Pick<PlacementDecision, 'required' | 'nodeLabelsByArchitecture' | 'nodeLabels' | 'amd64Level'>,
  isPinned: boolean,
): readonly Expressions[] {
  if (decision.required === undefined) return [];
  const match = labelExpressions(decision.nodeLabels);
  if (decision.required.length === 0) return [[architectureIn([noArchitecture]), ...match]];
  const groups = new Map<string, { architectures: string[]; labels: Expressions }>();
  for (const architecture of decision.required) {
    const own = labelExpressions(ofArchitecture(decision.nodeLabelsByArchitecture, architecture) ?? {});
    const { amd64Level } = decision;
    const labels = amd64Level && architecture === 'amd64' ? [...own, amd64Level] : own;
    const key = labels.length === 0 ? '' : JSON.stringify(labels);
    const group = groups.get(key);
    if (group) group.architectures.push(architecture);
    else groups.set(key, { architectures: [architecture], labels });
  }
  const lists = [...groups.values()].map(({ architectures, labels }) => {
    if (isPinned) return [...labels, ...match];
    const required = [architectureIn(architectures)];
    return [...required, ...itemsBeyond(required, [...labels, ...match], sameExpression)];
  });
  return lists.filter((expressions) => expressions.length > 0);
}

interface TermAdditions extends Pick<Added, 'terms' | 'match'> {
  /** Whether the pod has room for the record. */
  readonly isRecorded: boolean;
}

/**
 * The required terms at admission; the same list as `present` if nothing changes. Terms are ORed, so a further
 * term would loosen a person's requirement. Instead the additions are ANDed into every term. If the node labels
 * differ by architecture, a term is copied once for each group that it permits. Empty terms stay empty: any
 * expression would make them match.
 */
export function extendTerms(
  present: Terms | undefined,
  own: Terms | undefined,
  added: TermAdditions,
): Terms | undefined {
  const terms = extended(own, added);
  return present && terms && sameList(present, terms, sameTerm) ? present : terms;
}

function extended(own: Terms | undefined, added: TermAdditions): Terms | undefined {
  if (own !== undefined) {
    return own.flatMap((term) => copiesFor(term, added).map((list) => withExpressions(term, list)));
  }
  if (added.terms.length > 0) return added.terms.map((expressions) => ({ matchExpressions: expressions }));
  return added.match.length > 0 ? [{ matchExpressions: added.match }] : undefined;
}

/** A list of expressions for each copy of a term. A copy that could match no node is left out. */
function copiesFor(term: NodeSelectorTerm, added: TermAdditions): readonly Expressions[] {
  const copies = listsFor(term, added);
  if (added.isRecorded) return copies;
  // A further call would take them for the pod's own and add them again.
  return copies.map((list) => itemsBeyond(term.matchExpressions ?? [], list, sameExpression));
}

function listsFor(term: NodeSelectorTerm, added: TermAdditions): readonly Expressions[] {
  if (isEmptyTerm(term)) return [[]];
  if (added.terms.length === 0 || constrainsItself(term)) return [added.match];
  const possible = added.terms.filter((list) => permitsSome(term, list));
  return possible.length > 0 ? possible : added.terms.slice(0, 1);
}
