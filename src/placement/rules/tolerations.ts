/**
 * Tolerations for each required architecture: the policy's templates with the architecture as value, and the taints
 * that the policy lists for it. One that is tolerated already is never added again.
 */
import type { Toleration } from '../../kube/api/objects.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import { isArchitecture, own } from '../../names/architecture.ts';
import { sameToleration } from '../record/own-fields.ts';

/**
 * The tolerations to add.
 * @param architectures those that the pod may land on
 * @param present the pod's own tolerations
 */
export function tolerationsFor(
  policy: Policy,
  architectures: readonly string[],
  present: readonly Toleration[],
): readonly Toleration[] {
  const added: Toleration[] = [];
  for (const architecture of architectures) {
    for (const candidate of candidates(policy, architecture)) {
      const covered =
        present.some((toleration) => covers(toleration, candidate)) ||
        added.some((toleration) => covers(toleration, candidate));
      if (!covered) added.push(candidate);
    }
  }
  return added;
}

function candidates(policy: Policy, architecture: string): readonly Toleration[] {
  const templates = policy.tolerations.map(({ key, operator, effect }) =>
    written({ key, operator, value: architecture, ...(effect === undefined ? {} : { effect }) }),
  );
  const taints = own(policy.architectures, architecture)?.taintsToTolerate;
  return taints ? [...templates, ...taints.map(written)] : templates;
}

/** The same fields in the same order, whatever the configuration's order was. */
function written({ key, operator, value, effect, tolerationSeconds }: Toleration): Toleration {
  return {
    ...(key === undefined ? {} : { key }),
    ...(operator === undefined ? {} : { operator }),
    ...(value === undefined ? {} : { value }),
    ...(effect === undefined ? {} : { effect }),
    ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
  };
}

/**
 * Whether whatever `wanted` tolerates is tolerated by `present`, and for as long.
 * @see kubernetes component-helpers scheduling/corev1 Toleration.ToleratesTaint
 */
export function covers(present: Toleration, wanted: Toleration): boolean {
  if (present.effect && present.effect !== wanted.effect) return false;
  if (!lastsAsLong(present, wanted)) return false;
  const operator = present.operator || 'Equal';
  if (operator === 'Exists') return !present.key || present.key === wanted.key;
  return (
    operator === 'Equal' &&
    (wanted.operator || 'Equal') === 'Equal' &&
    present.key === wanted.key &&
    (present.value ?? '') === (wanted.value ?? '')
  );
}

function lastsAsLong(present: Toleration, wanted: Toleration): boolean {
  const seconds = present.tolerationSeconds ?? Number.POSITIVE_INFINITY;
  return seconds >= (wanted.tolerationSeconds ?? Number.POSITIVE_INFINITY);
}

/**
 * The tolerations of a pod that may run on any architecture: without them the taints that we give nodes would leave it
 * nowhere to go. Taints of others are not ours to open.
 * @param present the pod's own tolerations
 */
export function tolerationsForAny(policy: Policy, present: readonly Toleration[]): readonly Toleration[] {
  const wanted = ownTaintToleration(policy);
  return wanted === undefined || present.some((toleration) => covers(toleration, wanted)) ? [] : [wanted];
}

function ownTaintToleration({ ownTaintKey }: Policy): Toleration | undefined {
  if (ownTaintKey === undefined) return undefined;
  return { key: ownTaintKey, operator: 'Exists', effect: 'NoSchedule' };
}

/** Whether this policy could have added a toleration: what a forged record names beyond that is not ours. */
export function couldHaveAdded(policy: Policy, toleration: Toleration): boolean {
  const { value = '' } = toleration;
  const forAny = ownTaintToleration(policy);
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
