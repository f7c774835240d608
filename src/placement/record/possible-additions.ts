/** The additions that a policy can make. A record that names any other was not written under it. */
import type { Toleration } from '../../kube/api/objects.ts';
import { isArchitecture, own } from '../../names/architecture.ts';
import { keys } from '../../names/keys.ts';
import { isLabelValue, isNonEmptyLabelValue } from '../../names/labels.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import { anyArchitectureToleration } from '../pod/expressions.ts';
import { sameToleration } from '../pod/tolerations.ts';

type Expression = readonly [key: string, values: readonly string[]];

/** An expression in the terms without an architecture constraint: architectures, or labels of nodes. */
export function canRequire(policy: Policy, [key, values]: Expression): boolean {
  if (canMatch(policy, [key, values])) return true;
  if (key === keys.architectureLabel) return values.length > 0 && isSortedSet(values, isArchitecture);
  return Object.values(policy.architectures).some(
    ({ requireNodeLabels }) => values.length === 1 && own(requireNodeLabels, key) === values[0],
  );
}

/** An expression in every term: a label that the pod hands on to its node. */
export function canMatch(policy: Policy, [key, values]: Expression): boolean {
  return policy.matchNodeLabels.includes(key) && values.length === 1 && isLabelValue(values[0]);
}

export function canExclude(policy: Policy, hostnames: readonly string[]): boolean {
  return (
    hostnames.length === 0 || (policy.requirePullableNodes && isSortedSet(hostnames, isNonEmptyLabelValue))
  );
}

export function canTolerate(policy: Policy, toleration: Toleration): boolean {
  const { value = '' } = toleration;
  const forAny = anyArchitectureToleration(policy);
  if (forAny && sameToleration(toleration, forAny)) return true;
  const byTemplate =
    isArchitecture(value) &&
    policy.tolerations.some((template) => sameToleration(toleration, { ...template, value }));
  return (
    byTemplate ||
    Object.values(policy.architectures).some(({ taintsToTolerate }) =>
      taintsToTolerate.some((taint) => sameToleration(taint, toleration)),
    )
  );
}

function isSortedSet(texts: readonly string[], isValid: (text: string) => boolean): boolean {
  return texts.every((text, index) => isValid(text) && (texts[index - 1] ?? '') < text);
}
