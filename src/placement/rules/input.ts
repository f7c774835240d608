/** What the rules read: the pod as it was before earlier calls, and what all of its images say. */
import { matchedNodeLabels, namedArchitectureLabels, possibleLabels, withinNamed } from './nodes/labels.ts';
import type { PlacementInput } from '../decision.ts';
import type { ImageUse } from '../pod/images.ts';
import { operatingSystemOf } from '../pod/terms.ts';
import { ownFieldsOf } from '../record/own-fields.ts';
import { recordedIn, recordedWidened } from '../record/read.ts';
import { commonArchitectures, withinAllowed, withinClasses } from './images/common.ts';
import { verdictsOf } from './images/fit.ts';
import { preferencesOf } from './preference/read.ts';

export type RuleInput = ReturnType<typeof ruleInputOf>;

export function ruleInputOf(input: PlacementInput, uses: readonly ImageUse[]) {
  const { pod, policy, nodes } = input;
  const { schedulableArchitectures: schedulable } = policy;
  const os = operatingSystemOf(pod.spec);
  const images = verdictsOf(uses, os, input.facts, nodes, schedulable);
  /** The architectures that the images share, and the nodes of these that refuse an image. */
  const fit = withinClasses(commonArchitectures(images, schedulable), images, nodes, os);
  /** The additions of an earlier call. */
  const recorded = recordedIn(input) ?? (input.before && recordedIn({ ...input, pod: input.before }));
  /** The pod's own fields; once its constraint is widened, without that. */
  const fields = ownFieldsOf(pod.spec, recorded);
  /** Labels of the pod that its node must have. */
  const labels = possibleLabels(matchedNodeLabels(policy, pod.metadata?.labels), fields);
  /** Those of them that name an architecture. */
  const matchedArchitectures = namedArchitectureLabels(labels.matched);
  return {
    ...input,
    os,
    fields,
    recorded,
    /** What an earlier call removed, if the pod waits. */
    removed: input.waiting ? recordedWidened(input) : undefined,
    images,
    fit,
    /** Those that the policy and the pod's labels allow, too. `undefined`: any. */
    common: withinNamed(withinAllowed(fit.architectures, policy), matchedArchitectures),
    labels,
    matchedArchitectures,
    preferences: preferencesOf(pod.metadata, policy),
  };
}
