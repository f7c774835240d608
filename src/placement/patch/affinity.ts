/**
 * The part of the patch for node affinity: the highest object that is absent is added whole, so that no operation
 * depends on another one.
 */
import type {
  NodeAffinity,
  NodeSelectorTerm,
  PodSpec,
  PreferredSchedulingTerm,
} from '../../kube/api/objects.ts';
import type { Added, Operation } from '../decision.ts';
import type { OwnFields } from '../record/own-fields.ts';
import type { ListChange } from './patch.ts';
import { copiesFor, extendTerms, sameList, sameTerm } from '../pod/terms.ts';

export const requiredKey = 'requiredDuringSchedulingIgnoredDuringExecution';
export const preferredKey = 'preferredDuringSchedulingIgnoredDuringExecution';

/**
 * Operations for required and preferred node affinity.
 * @param spec as it stands
 * @param parts the pod's own part of it
 * @param preferred how the list of preferred terms changes
 * @param path of the pod's spec
 */
export function affinityOperations(
  spec: PodSpec,
  parts: OwnFields,
  added: Added,
  preferred: ListChange<PreferredSchedulingTerm>,
  path: string,
): Operation[] {
  const terms = extendTerms(parts.terms, added);
  const nodeAffinity = spec.affinity?.nodeAffinity;
  if (nodeAffinity) {
    return [
      ...requiredOperations(nodeAffinity, parts, terms, added, `${path}/affinity/nodeAffinity`),
      ...preferredOperations(nodeAffinity, preferred, `${path}/affinity/nodeAffinity/${preferredKey}`),
    ];
  }
  const value: NodeAffinity = {
    ...(terms === undefined ? {} : { [requiredKey]: { nodeSelectorTerms: terms } }),
    ...(preferred.append.length === 0 ? {} : { [preferredKey]: preferred.append }),
  };
  if (Object.keys(value).length === 0) return [];
  if (spec.affinity) return [{ op: 'add', path: `${path}/affinity/nodeAffinity`, value }];
  return [{ op: 'add', path: `${path}/affinity`, value: { nodeAffinity: value } }];
}

function requiredOperations(
  nodeAffinity: NodeAffinity,
  parts: OwnFields,
  terms: readonly NodeSelectorTerm[] | undefined,
  added: Added,
  path: string,
): Operation[] {
  const required = nodeAffinity[requiredKey];
  if (!required) {
    return terms === undefined
      ? []
      : [{ op: 'add', path: `${path}/${requiredKey}`, value: { nodeSelectorTerms: terms } }];
  }
  const present = required.nodeSelectorTerms ?? [];
  if (terms === undefined) {
    const { [requiredKey]: _, ...rest } = nodeAffinity;
    return [{ op: 'replace', path, value: rest }];
  }
  if (sameList(present, terms, sameTerm)) return [];
  const listPath = `${path}/${requiredKey}/nodeSelectorTerms`;
  // Appending is the smaller patch where nothing of ours is in the terms and none of them is multiplied.
  if (parts.terms !== present || terms.length !== present.length)
    return [{ op: 'replace', path: listPath, value: terms }];
  return present.flatMap((term, index) => appendTo(term, added, `${listPath}/${index}/matchExpressions`));
}

function appendTo(term: NodeSelectorTerm, added: Added, path: string): Operation[] {
  const expressions = copiesFor(term, added)[0] ?? [];
  if (expressions.length === 0) return [];
  if (!term.matchExpressions) return [{ op: 'add', path, value: expressions }];
  return expressions.map((value) => ({ op: 'add', path: `${path}/-`, value }));
}

export function preferredOperations(
  nodeAffinity: NodeAffinity,
  { whole, append }: ListChange<PreferredSchedulingTerm>,
  path: string,
): Operation[] {
  if (whole) return [{ op: 'replace', path, value: whole }];
  if (append.length === 0) return [];
  if (!nodeAffinity[preferredKey]) return [{ op: 'add', path, value: append }];
  return append.map((value) => ({ op: 'add', path: `${path}/-`, value }));
}
