/** What the rules read: the pod as it was before earlier calls, and what all of its images say. */
import {
  matchedNodeLabels,
  namedArchitectureLabels,
  possibleLabels,
  withinNamed,
  type Labels,
} from './nodes/labels.ts';
import type { ImageVerdict, OwnFields, PlacementInput, Recorded, Widened } from '../decision.ts';
import type { ImageUse } from '../pod/images.ts';
import { operatingSystemOf } from '../pod/terms.ts';
import { ownFieldsOf } from '../record/own-fields.ts';
import { recordedIn, recordedWidened } from '../record/read.ts';
import { commonArchitectures, withinAllowed, withinClasses, type CommonFit } from './images/common.ts';
import { verdictsOf } from './images/fit.ts';
import { preferencesOf, type Preference } from './preference/read.ts';

export interface RuleInput extends PlacementInput {
  readonly os: string;
  /** The pod's own fields; once its constraint is widened, without that. */
  readonly fields: OwnFields;
  /** The additions of an earlier call. */
  readonly recorded: Recorded | undefined;
  /** What an earlier call removed, if the pod waits. */
  readonly removed: Widened | undefined;
  readonly images: readonly ImageVerdict[];
  /** The architectures that the images share, and the nodes of these that refuse an image. */
  readonly fit: CommonFit;
  /** Those that the policy and the pod's labels allow, too. `undefined`: any. */
  readonly common: readonly string[] | undefined;
  /** Labels of the pod that its node must have. */
  readonly labels: ReturnType<typeof possibleLabels>;
  /** Those of them that name an architecture. */
  readonly matchedArchitectures: Labels;
  readonly preferences: readonly Preference[];
}

/** @param uses the images of the pod */
export function ruleInputOf(input: PlacementInput, uses: readonly ImageUse[]): RuleInput {
  const { pod, policy, nodes } = input;
  const { schedulableArchitectures: schedulable } = policy;
  const os = operatingSystemOf(pod.spec);
  const images = verdictsOf(uses, os, input.facts, nodes, schedulable);
  const fit = withinClasses(commonArchitectures(images, schedulable), images, nodes, os);
  const recorded = recordedIn(input) ?? (input.before && recordedIn({ ...input, pod: input.before }));
  const fields = ownFieldsOf(pod.spec, recorded);
  const labels = possibleLabels(matchedNodeLabels(policy, pod.metadata?.labels), fields);
  const matchedArchitectures = namedArchitectureLabels(labels.matched);
  return {
    ...input,
    os,
    fields,
    recorded,
    removed: input.waiting ? recordedWidened(input) : undefined,
    images,
    fit,
    common: withinNamed(withinAllowed(fit.architectures, policy), matchedArchitectures),
    labels,
    matchedArchitectures,
    preferences: preferencesOf(pod.metadata, policy),
  };
}
