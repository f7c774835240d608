/** The node affinity expressions and tolerations that archwright writes, and what tolerations mean. */
import type { NodeSelectorRequirement, PreferredSchedulingTerm, Toleration } from '../../kube/api/objects.ts';
import { byName } from '../../names/values.ts';
import { keys } from '../../names/keys.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import type { Expressions } from './terms.ts';

/** The scheduler compares each node with each value. */
export const maxExcludedNodes = 250;

export function architectureIn(architectures: readonly string[]): NodeSelectorRequirement {
  return { key: keys.architectureLabel, operator: 'In', values: architectures };
}

/** Excludes nodes by name; a node without the label is not excluded. */
export function hostnameNotIn(hostnames: readonly string[]): Expressions {
  return hostnames.length === 0 ? [] : [{ key: keys.hostnameLabel, operator: 'NotIn', values: hostnames }];
}

export function labelExpressions(labels: Readonly<Record<string, string>>): Expressions {
  const sorted = Object.entries(labels).sort(([a], [b]) => byName(a, b));
  return sorted.map(([key, value]) => ({ key, operator: 'In', values: [value] }));
}

export function preferredTerm(architecture: string, weight: number): PreferredSchedulingTerm {
  return { weight, preference: { matchExpressions: [architectureIn([architecture])] } };
}

/** Tolerates archwright's own taint of every architecture; `undefined` if the policy sets no taints. */
export function anyArchitectureToleration({ ownTaintKey }: Policy): Toleration | undefined {
  if (ownTaintKey === undefined) return undefined;
  return { key: ownTaintKey, operator: 'Exists', effect: 'NoSchedule' };
}

/**
 * Whether `present` tolerates every taint that `wanted` tolerates, for at least as long.
 * @see kubernetes component-helpers scheduling/corev1 Toleration.ToleratesTaint
 */
export function covers(present: Toleration, wanted: Toleration): boolean {
  if (present.effect && present.effect !== wanted.effect) return false;
  if (secondsOf(present) < secondsOf(wanted)) return false;
  const operator = present.operator || 'Equal';
  if (operator === 'Exists') return !present.key || present.key === wanted.key;
  return (
    operator === 'Equal' &&
    (wanted.operator || 'Equal') === 'Equal' &&
    present.key === wanted.key &&
    (present.value ?? '') === (wanted.value ?? '')
  );
}

function secondsOf({ tolerationSeconds }: Toleration): number {
  return tolerationSeconds ?? Number.POSITIVE_INFINITY;
}

/** Whether two tolerations are equal once the API server's defaults are filled in. */
export function sameToleration(a: Toleration, b: Toleration): boolean {
  return (
    (a.key ?? '') === (b.key ?? '') &&
    (a.operator ?? 'Equal') === (b.operator ?? 'Equal') &&
    (a.value ?? '') === (b.value ?? '') &&
    (a.effect ?? '') === (b.effect ?? '') &&
    (a.tolerationSeconds ?? undefined) === (b.tolerationSeconds ?? undefined)
  );
}
