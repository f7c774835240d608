/** The exact additions of a decision to one pod. The patch writes them, and the annotation records them. */
import type { NodeSelectorRequirement } from '../../kube/api/objects.ts';
import { noArchitecture, own } from '../../names/architecture.ts';
import type { Added, OwnFields, PlacementDecision } from '../decision.ts';
import { architectureIn, hostnameNotIn, labelExpressions, preferredTerm } from '../pod/expressions.ts';
import { constrainsItself } from '../pod/terms.ts';
import { lookalikesAmong } from '../record/own-fields.ts';

type Expressions = readonly NodeSelectorRequirement[];

export function additionsOf(decision: PlacementDecision, fields: OwnFields): Added {
  const pinned = pinOf(decision, fields);
  const { excludedNodes } = decision;
  const exclusion = hostnameNotIn(excludedNodes);
  const groups = expressionGroups(decision, pinned !== undefined);
  const terms = exclusion.length === 0 ? groups : groups.map((list) => [...list, ...exclusion]);
  const labels = labelExpressions(decision.nodeLabels);
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
  return (
    terms.length === 0 &&
    match.length === 0 &&
    preferred.length === 0 &&
    tolerations.length === 0 &&
    pinned === undefined
  );
}

/**
 * A hard preference pins by nodeSelector, which is ANDed to every required term. If a required term chooses another
 * architecture as an alternative, the terms without a constraint are narrowed instead. (A pod with an architecture in its own
 * nodeSelector gets no preference.)
 */
function pinOf(decision: PlacementDecision, { terms }: OwnFields): string | undefined {
  const preferred = decision.preferred[0];
  if (decision.preferenceMode !== 'hard' || preferred === undefined) return undefined;
  return terms?.some(constrainsItself) ? undefined : preferred.architecture;
}

/**
 * The expressions that each required term needs, one list for each group of architectures with equal node labels.
 * @param isPinned true if the nodeSelector names the architecture
 */
export function expressionGroups(
  decision: Pick<PlacementDecision, 'required' | 'nodeLabelsByArchitecture' | 'nodeLabels'>,
  isPinned: boolean,
): readonly Expressions[] {
  if (decision.required === undefined) return [];
  const match = labelExpressions(decision.nodeLabels);
  if (decision.required.length === 0) return [[architectureIn([noArchitecture]), ...match]];
  const groups = new Map<string, { architectures: string[]; labels: Expressions }>();
  for (const architecture of decision.required) {
    const labels = labelExpressions(own(decision.nodeLabelsByArchitecture, architecture) ?? {});
    const key = labels.length === 0 ? '' : JSON.stringify(labels);
    const group = groups.get(key);
    if (group) group.architectures.push(architecture);
    else groups.set(key, { architectures: [architecture], labels });
  }
  const lists = [...groups.values()].map(({ architectures, labels }) =>
    isPinned ? [...labels, ...match] : [architectureIn(architectures), ...labels, ...match],
  );
  return lists.filter((expressions) => expressions.length > 0);
}
