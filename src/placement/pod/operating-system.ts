/**
 * The operating system of a pod. `spec.os` only informs the kubelet and the validation of pods. Most pods for
 * Windows have nothing but the label `kubernetes.io/os` in their nodeSelector, which the scheduler reads.
 */
import type { NodeSelectorTerm, PodSpec } from '../../kube/api/objects.ts';
import { defaultOs } from '../../names/platform.ts';
import { own } from '../../names/values.ts';
import { isEmptyTerm } from './terms.ts';

const osLabels = ['kubernetes.io/os', 'beta.kubernetes.io/os'] as const;

/** `spec.os.name`, else that of the nodeSelector or of all required terms with content, else `linux`. */
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
  const named = new Set(terms.filter((term) => !isEmptyTerm(term)).map(inTerm));
  return named.size === 1 ? [...named][0] : undefined;
}

function inTerm({ matchExpressions }: NodeSelectorTerm): string | undefined {
  const chosen = matchExpressions?.find(
    ({ key, operator, values }) =>
      operator === 'In' && values?.length === 1 && osLabels.some((label) => label === key),
  );
  return chosen?.values?.[0];
}
