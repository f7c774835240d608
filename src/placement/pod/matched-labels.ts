/** Labels of the pod that its node must have too (`matchNodeLabels`). */
import { isArchitecture, isArchitectureKey } from '../../names/architecture.ts';
import { isLabelValue } from '../../names/labels.ts';
import { printable } from '../../names/printable.ts';
import { own } from '../../names/values.ts';
import type { Policy } from '../../policy/effective/policy.ts';

export type Labels = Readonly<Record<string, string>>;

const none: Labels = Object.freeze({});

/** In the policy's order. Values that no label can have are omitted. */
export function matchedNodeLabels(policy: Policy, podLabels: Labels | null | undefined): Labels {
  if (policy.matchNodeLabels.length === 0) return none;
  const labels: Record<string, string> = {};
  for (const key of policy.matchNodeLabels) {
    const value = own(podLabels, key);
    if (isLabelValue(value)) labels[key] = value;
  }
  return labels;
}

/** Those that name an architecture. */
export function namedArchitectureLabels(matched: Labels): Labels {
  if (matched === none) return none;
  return Object.fromEntries(Object.entries(matched).filter(([key]) => isArchitectureKey(key)));
}

/**
 * The architectures within the one that the labels name.
 * @param architectures `undefined`: any. The labels apply even then
 */
export function withinNamed(
  architectures: readonly string[] | undefined,
  labels: Labels,
): readonly string[] | undefined {
  const named = Object.values(labels);
  const [first] = named;
  if (first === undefined) return architectures;
  const isOne = isArchitecture(first) && named.every((name) => name === first);
  const possible = isOne ? [first] : [];
  return architectures?.filter((name) => possible.includes(name)) ?? possible;
}

export function describeLabels(labels: Labels): string {
  const text = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return printable(text.join(', '), 400);
}
