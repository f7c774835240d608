/**
 * Labels that a node of an architecture must have (`architectures.<arch>.requireNodeLabels`), and labels of
 * the pod that its node must have too (`matchNodeLabels`). If these name an architecture, no other one is
 * required.
 */
import { isArchitecture, isArchitectureKey } from '../../names/architecture.ts';
import { own } from '../../names/values.ts';
import { isLabelValue } from '../../names/labels.ts';
import { printable } from '../../names/printable.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import { reason } from './rules.ts';

type Labels = Readonly<Record<string, string>>;

const none: Labels = Object.freeze({});

/**
 * The architectures within the one that the pod's labels name, under `matchNodeLabels`.
 * @param architectures `undefined`: any. The label applies even then
 */
export function withinMatchedLabels(
  architectures: readonly string[] | undefined,
  policy: Policy,
  podLabels: Labels | null | undefined,
): readonly string[] | undefined {
  const named = Object.values(matchedArchitectures(policy, podLabels));
  const [first] = named;
  if (first === undefined) return architectures;
  const isOne = isArchitecture(first) && named.every((name) => name === first);
  const possible = isOne ? [first] : [];
  return architectures?.filter((name) => possible.includes(name)) ?? possible;
}

/** The labels of the pod that name an architecture which its node must have. */
export function matchedArchitectures(policy: Policy, podLabels: Labels | null | undefined): Labels {
  const matched = Object.entries(matchedNodeLabels(policy, podLabels));
  return Object.fromEntries(matched.filter(([key]) => isArchitectureKey(key)));
}

/** @param kept architectures whose nodes need no labels, because the pod named them itself */
export function nodeLabelsOf(
  policy: Policy,
  podLabels: Labels | null | undefined,
  required: readonly string[] | undefined,
  kept: readonly string[] = [],
) {
  const chosen = kept.length === 0 ? required : required?.filter((name) => !kept.includes(name));
  const byArchitecture = labelsByArchitecture(policy, chosen);
  const matched = matchedNodeLabels(policy, podLabels);
  const reasons = Object.entries(byArchitecture).map(([architecture, labels]) =>
    reason('require-node-labels', `${architecture}: ${describeLabels(labels)}`),
  );
  if (Object.keys(matched).length > 0) reasons.push(reason('match-node-labels', describeLabels(matched)));
  return { byArchitecture, matched, reasons };
}

/** Architectures without required labels are omitted. */
function labelsByArchitecture(
  policy: Policy,
  architectures: readonly string[] | undefined,
): Readonly<Record<string, Labels>> {
  const found: Record<string, Labels> = {};
  for (const architecture of architectures ?? []) {
    const labels = own(policy.architectures, architecture)?.requireNodeLabels;
    if (labels && Object.keys(labels).length > 0) found[architecture] = labels;
  }
  return found;
}

/** In the policy's order. Values that no label can have are omitted. */
function matchedNodeLabels(policy: Policy, podLabels: Labels | null | undefined): Labels {
  if (policy.matchNodeLabels.length === 0) return none;
  const labels: Record<string, string> = {};
  for (const key of policy.matchNodeLabels) {
    const value = own(podLabels, key);
    if (isLabelValue(value)) labels[key] = value;
  }
  return labels;
}

export function describeLabels(labels: Labels): string {
  const text = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return printable(text.join(', '), 400);
}
