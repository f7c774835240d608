/**
 * From a decision to exactly what is added to one pod. The patch writes it and the annotation records it, so both always
 * say the same.
 */
import type { Added, PlacementDecision } from '../decision.ts';
import { expressionGroups, hostnameNotIn, labelExpressions } from '../rules/node-labels.ts';
import type { OwnFields } from '../record/own-fields.ts';
import { preferredTerm } from '../record/read.ts';
import { constrainsItself, lookalikesAmong } from '../pod/terms.ts';

/**
 * What the patch adds.
 * @param parts the pod's own part of its scheduling fields
 */
export function additionsOf(decision: PlacementDecision, parts: OwnFields): Added {
  const pinned = pinOf(decision, parts);
  const { excludedNodes } = decision;
  const others = hostnameNotIn(excludedNodes);
  const terms = withEach(expressionGroups(decision, pinned !== undefined), others);
  const labels = labelExpressions(decision.nodeLabels);
  const match = others.length === 0 ? labels : [...labels, ...others];
  const soft = decision.preferenceMode === 'soft' ? decision.preferred : [];
  return {
    terms,
    match,
    excludedNodes,
    lookalikes: lookalikesAmong(parts.terms, { terms, match }),
    made: parts.terms === undefined && (terms.length > 0 || match.length > 0),
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

/** Whether there is anything to add, and so to record. */
export function addsNothing(added: Added): boolean {
  return (
    added.terms.length === 0 &&
    added.match.length === 0 &&
    added.preferred.length === 0 &&
    added.tolerations.length === 0 &&
    added.pinned === undefined
  );
}

/** Adds the same items to the end of each list. */
function withEach<Item>(
  lists: readonly (readonly Item[])[],
  more: readonly Item[],
): readonly (readonly Item[])[] {
  return more.length === 0 ? lists : lists.map((list) => [...list, ...more]);
}

/**
 * A hard preference pins by nodeSelector, which is ANDed to everything: not possible where a required term chose another
 * architecture as an alternative. There the terms without a constraint are narrowed instead. (A pod with an architecture in
 * its own nodeSelector gets no preference in the first place.)
 */
function pinOf(decision: PlacementDecision, parts: OwnFields): string | undefined {
  const preferred = decision.preferred[0];
  if (decision.preferenceMode !== 'hard' || preferred === undefined) return undefined;
  return parts.terms?.some(constrainsItself) ? undefined : preferred.architecture;
}
