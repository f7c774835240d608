/**
 * The operating system that a pod is for. `spec.os` says it outright, but only informs the kubelet and the validation of pods;
 * what brings pods to Windows nodes is the label `kubernetes.io/os` in their nodeSelector, and most of them carry nothing else.
 * Whoever wants something else than Linux and says so nowhere has to be lucky with the scheduler anyway.
 */
import type { NodeSelectorTerm, PodSpec } from '../../kube/api/objects.ts';
import { own } from '../../names/architecture.ts';
import { isEmptyTerm } from './terms.ts';

const osLabels = ['kubernetes.io/os', 'beta.kubernetes.io/os'] as const;

const defaultOs = 'linux';

/**
 * The operating system of the nodes that a pod can be on: `spec.os.name`, else what its nodeSelector or each of its required
 * terms that can match at all asks for, else `linux`.
 * @param spec of a pod or a template
 */
export function operatingSystemOf({ os, nodeSelector, affinity }: PodSpec): string {
  if (os?.name) return os.name;
  for (const label of osLabels) {
    const selected = own(nodeSelector, label);
    if (selected) return selected;
  }
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return inEveryTerm(required?.nodeSelectorTerms ?? []) || defaultOs;
}

function inEveryTerm(terms: readonly NodeSelectorTerm[]): string | undefined {
  let found: string | undefined;
  for (const term of terms) {
    if (isEmptyTerm(term)) continue;
    const named = inTerm(term);
    if (named === undefined || (found !== undefined && named !== found)) return undefined;
    found = named;
  }
  return found;
}

function inTerm({ matchExpressions }: NodeSelectorTerm): string | undefined {
  const chosen = matchExpressions?.find(
    ({ key, operator, values }) =>
      operator === 'In' && values?.length === 1 && osLabels.some((label) => label === key),
  );
  return chosen?.values?.[0];
}
