/**
 * Templates. A DaemonSet's template is placed like a pod, but for the gate and preferences, since its controller pins
 * each pod to its node and asks no scheduler for a choice. The template of any other workload stays as it is: its pods
 * are placed when they are created. The person who applies it hears at once where its images share no architecture.
 */
import type { ImageVerdict, PlacementDecision } from '../decision.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import { explainNoCommon } from './no-common.ts';
import { reason } from './rules.ts';
import { boundedWarnings } from '../../names/printable.ts';

/**
 * The decision for the template of a Deployment, StatefulSet, ReplicaSet, Job or CronJob: nothing is added.
 * @param common architectures that the known images share; `undefined`: they say nothing
 */
export function lookAtTemplate(
  policy: Policy,
  os: string,
  images: readonly ImageVerdict[],
  common: readonly string[] | undefined,
): PlacementDecision {
  const shares = common === undefined || common.length > 0;
  const warnings = shares
    ? []
    : [`archwright: pods of this template cannot be placed: ${explainNoCommon(images, policy)}`];
  const message =
    common === undefined
      ? 'its images constrain nothing so far'
      : `its images can run on ${common.join(', ') || 'no common architecture'}`;
  return {
    outcome: 'unconstrained',
    template: 'workload',
    os,
    images,
    required: undefined,
    preferred: [],
    preferenceMode: 'soft',
    nodeLabelsByArchitecture: {},
    nodeLabels: {},
    excludedNodes: [],
    tolerations: [],
    gate: false,
    warnings: boundedWarnings(warnings),
    reasons: [reason('workload-template', message)],
  };
}
