/** Architectures that a pod names in its nodeSelector or by `In` in terms: removal and way back. */
import type { NodeSelectorRequirement } from '../../kube/api/objects.ts';
import { isArchitectureKey } from '../../names/architecture.ts';
import type { OwnFields, Widened } from '../decision.ts';
import { isEmptyTerm, withExpressions } from '../pod/terms.ts';

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
