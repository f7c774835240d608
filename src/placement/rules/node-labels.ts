/**
 * Node labels: those that a node of one architecture must carry (`architectures.<arch>.requireNodeLabels`), and those
 * that the pod hands on (`matchNodeLabels`): for each listed key that the pod carries, the node must carry the same
 * value.
 */
import type { NodeSelectorRequirement } from '../../kube/api/objects.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import { byName, noArchitecture, own } from '../../names/architecture.ts';
import { isLabelValue } from '../../names/labels.ts';
import { keys } from '../../names/keys.ts';
import type { PlacementDecision } from '../decision.ts';

type Labels = Readonly<Record<string, string>>;

const none: Labels = Object.freeze({});

/** The labels that the pod hands on, in the policy's order. A value that no label can have is left out. */
export function matchedNodeLabels(policy: Policy, podLabels: Labels | null | undefined): Labels {
  if (policy.matchNodeLabels.length === 0) return none;
  const labels: Record<string, string> = {};
  for (const key of policy.matchNodeLabels) {
    const value = own(podLabels, key);
    if (isLabelValue(value)) labels[key] = value;
  }
  return labels;
}

/** The labels that nodes of these architectures must carry; architectures without any are left out. */
export function labelsByArchitecture(
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

export function labelExpressions(labels: Labels): readonly NodeSelectorRequirement[] {
  return Object.keys(labels)
    .sort(byName)
    .map((key) => ({ key, operator: 'In', values: [labels[key] ?? ''] }));
}

/** Leaves nodes out by their names; a node without the label is not left out. */
export function hostnameNotIn(hostnames: readonly string[]): readonly NodeSelectorRequirement[] {
  return hostnames.length === 0 ? [] : [{ key: keys.hostnameLabel, operator: 'NotIn', values: hostnames }];
}

/**
 * The expressions that each required term needs, one list for each group of architectures with the same node labels.
 * @param architectureElsewhere true where the nodeSelector says the architecture already
 */
export function expressionGroups(
  decision: Pick<PlacementDecision, 'required' | 'nodeLabelsByArchitecture' | 'nodeLabels'>,
  architectureElsewhere: boolean,
): readonly (readonly NodeSelectorRequirement[])[] {
  if (decision.required === undefined) return [];
  const match = labelExpressions(decision.nodeLabels);
  if (decision.required.length === 0) return [[architectureIn([noArchitecture]), ...match]];
  const groups = new Map<string, { architectures: string[]; labels: readonly NodeSelectorRequirement[] }>();
  for (const architecture of decision.required) {
    const labels = labelExpressions(own(decision.nodeLabelsByArchitecture, architecture) ?? none);
    const key = labels.length === 0 ? '' : JSON.stringify(labels);
    const group = groups.get(key);
    if (group) group.architectures.push(architecture);
    else groups.set(key, { architectures: [architecture], labels });
  }
  const lists = [...groups.values()].map(({ architectures, labels }) =>
    architectureElsewhere ? [...labels, ...match] : [architectureIn(architectures), ...labels, ...match],
  );
  return lists.filter((expressions) => expressions.length > 0);
}

export function architectureIn(architectures: readonly string[]): NodeSelectorRequirement {
  return { key: keys.architectureLabel, operator: 'In', values: architectures };
}
