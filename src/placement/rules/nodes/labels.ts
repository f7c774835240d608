/**
 * Labels that a node of an architecture must have (`architectures.<arch>.requireNodeLabels`), and labels of
 * the pod that its node must have too (`matchNodeLabels`).
 */
import { own } from '../../../names/values.ts';
import type { Policy } from '../../../policy/effective/policy.ts';
import { describeLabels, type Labels } from '../../pod/matched-labels.ts';
import type { RuleInput } from '../input.ts';
import { reason, type Draft } from '../rules.ts';

export function nodeLabelsOf(
  {
    policy,
    matchedLabels,
    contradictedLabels,
  }: Pick<RuleInput, 'policy' | 'matchedLabels' | 'contradictedLabels'>,
  // Nodes of the architectures that the pod named itself need no labels.
  { keptArchitectures: kept = [] }: Pick<Draft, 'keptArchitectures'>,
  required: readonly string[] | undefined,
) {
  const chosen = kept.length === 0 ? required : required?.filter((name) => !kept.includes(name));
  const byArchitecture = labelsByArchitecture(policy, chosen);
  const reasons = Object.entries(byArchitecture).map(([architecture, labels]) =>
    reason('require-node-labels', `${architecture}: ${describeLabels(labels)}`),
  );
  if (Object.keys(matchedLabels).length > 0)
    reasons.push(reason('match-node-labels', describeLabels(matchedLabels)));
  const left = describeLabels(contradictedLabels);
  if (left !== '') reasons.push(reason('match-node-labels-left-out', left));
  const warnings =
    left === ''
      ? []
      : [
          `archwright: the pod's own node constraints exclude nodes with ${left} (matchNodeLabels), so archwright does not require it`,
        ];
  return { byArchitecture, reasons, warnings };
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
