/**
 * The template of a Deployment, StatefulSet, ReplicaSet, Job or CronJob. It stays unchanged, because its pods are placed when
 * they are created. The person who applies it gets a warning if its images share no architecture.
 */
import { boundedWarnings } from '../../names/printable.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import { noAdditions, type ImageVerdict, type PlacementDecision } from '../decision.ts';
import { explainNoCommon } from './no-common.ts';
import { reason } from './rules.ts';

/** @param common architectures that the known images share; `undefined`: they constrain nothing */
export function workloadTemplate(
  policy: Policy,
  os: string,
  images: readonly ImageVerdict[],
  common: readonly string[] | undefined,
): PlacementDecision {
  const warnings =
    common?.length === 0
      ? [`archwright: pods of this template cannot be placed: ${explainNoCommon(images, policy)}`]
      : [];
  const message =
    common === undefined
      ? 'its images constrain nothing so far'
      : `its images can run on ${common.join(', ') || 'no common architecture'}`;
  return {
    ...noAdditions,
    outcome: 'unconstrained',
    template: 'workload',
    os,
    images,
    warnings: boundedWarnings(warnings),
    reasons: [reason('workload-template', message)],
  };
}
