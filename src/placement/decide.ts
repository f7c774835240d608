/**
 * The decision in four steps: skip the pod, or read it; constrain its architectures; prefer some; choose among
 * their nodes. Each rule of docs/use/placement.md has its own file.
 */
import type { PlacementDecision, PlacementInput } from './decision.ts';
import { boundedWarnings } from '../names/printable.ts';
import { imagesOf } from './pod/images.ts';
import { constrain } from './rules/constraint/constrain.ts';
import { ownTermWarnings } from './rules/constraint/own.ts';
import { explainDetails } from './rules/details.ts';
import { ruleInputOf } from './rules/input.ts';
import { restrictToClasses } from './rules/nodes/classes.ts';
import { nodeLabelsOf } from './rules/nodes/labels.ts';
import { excludedNodesOf } from './rules/nodes/pullable.ts';
import { addedTolerations } from './rules/nodes/tolerations.ts';
import { preferredOf } from './rules/preference/prefer.ts';
import { placementMistakes, skipped, skipReasonOf, unchangedTemplate } from './rules/skip.ts';
import { namedNodeWarnings } from './running-pod.ts';

export function decide(input: PlacementInput): PlacementDecision {
  const uses = imagesOf(input.pod.spec);
  const skip = skipReasonOf(input, uses);
  if (skip !== undefined) return skipped(input, skip, namedNodeWarnings(input));

  const read = ruleInputOf(input, uses);
  const { now, draft } = constrain(read);
  const preference = preferredOf(now, draft);
  const { required } = preference;
  const tolerations = addedTolerations(now, draft, required);
  const labels = nodeLabelsOf(now.policy, now.labels, draft, required);
  const classes = restrictToClasses(now, draft, required);
  const nodes = excludedNodesOf(now, draft, required, classes.hostnames);

  const { template, recorded, seal } = now;
  const decision: PlacementDecision = {
    outcome: draft.outcome,
    template,
    own: now.fields,
    widened: draft.widened ?? now.removed,
    replaces: recorded,
    seal,
    os: now.os,
    images: now.images,
    required,
    preferred: preference.preferred,
    preferenceMode: preference.mode,
    nodeLabelsByArchitecture: labels.byArchitecture,
    nodeLabels: now.labels.matched,
    amd64Level: classes.amd64Level,
    excludedNodes: nodes.hostnames,
    tolerations: tolerations.added,
    gate: draft.gate ?? false,
    rollout: draft.rollout,
    message: draft.message,
    warnings: boundedWarnings([
      ...placementMistakes(input),
      ...draft.warnings,
      ...ownTermWarnings(now, required),
      ...labels.warnings,
      ...classes.warnings,
      ...nodes.warnings,
      ...preference.warnings,
    ]),
    reasons: [
      ...draft.reasons,
      ...preference.reasons,
      ...explainDetails(now),
      ...tolerations.reasons,
      ...labels.reasons,
      ...classes.reasons,
      ...nodes.reasons,
    ],
  };
  return template === 'workload' ? unchangedTemplate(decision, now) : decision;
}
