/**
 * Tolerations for each required architecture: the policy's templates with the architecture as value, and the
 * taints that the policy lists for it. A taint that the pod tolerates already gets no further toleration.
 */
import type { Toleration } from '../../../kube/api/objects.ts';
import { own } from '../../../names/values.ts';
import type { Policy } from '../../../policy/effective/policy.ts';
import type { Outcome } from '../../decision.ts';
import { anyArchitectureToleration, covers } from '../../pod/expressions.ts';
import type { RuleInput } from '../input.ts';
import { reason, type Draft } from '../rules.ts';

/** Outcomes with which a pod can run on any architecture if nothing is required. */
const mayRunAnywhere = new Set<Outcome>(['unconstrained', 'allowed-unknown', 'fallback', 'own-constraint']);

export function addedTolerations(
  { policy, fields }: Pick<RuleInput, 'policy' | 'fields'>,
  draft: Pick<Draft, 'gate' | 'tolerated' | 'outcome'>,
  required: readonly string[] | undefined,
) {
  const { own: present } = fields.tolerations;
  const added: Toleration[] = [];
  for (const candidate of candidatesFor(policy, draft, required)) {
    const isCovered = [...present, ...added].some((toleration) => covers(toleration, candidate));
    if (!isCovered) added.push(candidate);
  }
  return { added, reasons: added.length === 0 ? [] : [reason('tolerations', `${added.length} added`)] };
}

function candidatesFor(
  policy: Policy,
  { gate, tolerated, outcome }: Pick<Draft, 'gate' | 'tolerated' | 'outcome'>,
  required: readonly string[] | undefined,
): readonly Toleration[] {
  // Tolerations cannot be removed from a pod, and a gated pod's unknown images may leave fewer architectures.
  if (gate === true) return [];
  const architectures = tolerated ?? required;
  if (architectures === undefined && mayRunAnywhere.has(outcome)) {
    // Without it archwright's taints would leave the pod no node. Other taints are not archwright's.
    const any = anyArchitectureToleration(policy);
    return any === undefined ? [] : [any];
  }
  return (architectures ?? []).flatMap((architecture) => candidates(policy, architecture));
}

function candidates(policy: Policy, architecture: string): readonly Toleration[] {
  const templates = policy.tolerations.map(({ key, operator, effect }): Toleration => ({
    key,
    operator,
    value: architecture,
    ...(effect && { effect }),
  }));
  const taints = own(policy.architectures, architecture)?.taintsToTolerate;
  return taints ? [...templates, ...taints] : templates;
}
