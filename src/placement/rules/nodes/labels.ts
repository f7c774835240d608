/**
 * Labels that a node of an architecture must have (`architectures.<arch>.requireNodeLabels`), and labels of
 * the pod that its node must have too (`matchNodeLabels`).
 */
import { isArchitecture, isArchitectureKey } from '../../../names/architecture.ts';
import { isLabelValue } from '../../../names/labels.ts';
import { printable } from '../../../names/printable.ts';
import { own } from '../../../names/values.ts';
import type { Policy } from '../../../policy/effective/policy.ts';
import type { OwnFields } from '../../decision.ts';
import { excludesLabel } from '../../pod/terms.ts';
import { reason, type Draft } from '../rules.ts';

export type Labels = Readonly<Record<string, string>>;

const none: Labels = Object.freeze({});

/** Keeps the policy's order. Omits values that no label can have. */
export function matchedNodeLabels(policy: Policy, podLabels: Labels | null | undefined): Labels {
  if (policy.matchNodeLabels.length === 0) return none;
  const labels: Record<string, string> = {};
  for (const key of policy.matchNodeLabels) {
    const value = own(podLabels, key);
    if (isLabelValue(value)) labels[key] = value;
  }
  return labels;
}

/**
 * The labels that a node of the pod's own constraints can have, and those that none can have: with these, the
 * pod could run nowhere. Architectures are decided with those of the images.
 */
export function possibleLabels(
  wanted: Labels,
  { nodeSelector, terms }: Pick<OwnFields, 'nodeSelector' | 'terms'>,
): { readonly matched: Labels; readonly contradicted: Labels } {
  if (wanted === none) return { matched: none, contradicted: none };
  const isContradicted = ([key, value]: readonly [string, string]): boolean => {
    if (isArchitectureKey(key)) return false;
    const chosen = own(nodeSelector, key);
    if (chosen !== undefined && chosen !== value) return true;
    return terms !== undefined && terms.length > 0 && terms.every((term) => excludesLabel(term, key, value));
  };
  const entries = Object.entries(wanted);
  return {
    matched: Object.fromEntries(entries.filter((entry) => !isContradicted(entry))),
    contradicted: Object.fromEntries(entries.filter(isContradicted)),
  };
}

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

export function nodeLabelsOf(
  {
    policy,
    labels: { matched, contradicted },
  }: { readonly policy: Policy; readonly labels: ReturnType<typeof possibleLabels> },
  // Nodes of the architectures that the pod named itself need no labels.
  { keptArchitectures: kept = [] }: Pick<Draft, 'keptArchitectures'>,
  required: readonly string[] | undefined,
) {
  const byArchitecture: Record<string, Labels> = {};
  for (const architecture of required ?? []) {
    const { requireNodeLabels: labels = none } = own(policy.architectures, architecture) ?? {};
    if (!kept.includes(architecture) && Object.keys(labels).length > 0) byArchitecture[architecture] = labels;
  }
  const reasons = Object.entries(byArchitecture).map(([architecture, labels]) =>
    reason('require-node-labels', `${architecture}: ${describeLabels(labels)}`),
  );
  if (Object.keys(matched).length > 0) reasons.push(reason('match-node-labels', describeLabels(matched)));
  const left = describeLabels(contradicted);
  if (left !== '') reasons.push(reason('match-node-labels-left-out', left));
  const warnings =
    left === ''
      ? []
      : [
          `archwright: the pod's own node constraints exclude nodes with ${left} (matchNodeLabels), so archwright does not require it`,
        ];
  return { byArchitecture, reasons, warnings };
}
