/**
 * The decision in four steps: skip the pod, or read it; constrain its architectures; prefer some; choose among
 * their nodes. Each rule of docs/use/placement.md has its own file.
 */
import type { ImageVerdict, PlacementDecision, PlacementInput, Reason } from './decision.ts';
import { isBytecode, maxArchitectures } from '../names/architecture.ts';
import { boundedWarnings, printable } from '../names/printable.ts';
import { imagesOf } from './pod/images.ts';
import { isEmptyTerm, keptTerms } from './pod/terms.ts';
import { constrain } from './rules/constraint/constrain.ts';
import { warnIfOwnTermsExclude, warnIfWrongNodesMatch } from './rules/constraint/own.ts';
import { ruleInputOf, type RuleInput } from './rules/input.ts';
import { explainFit, restrictToClasses } from './rules/nodes/classes.ts';
import { nodeLabelsOf } from './rules/nodes/labels.ts';
import { excludedNodesOf } from './rules/nodes/pullable.ts';
import { addedTolerations } from './rules/nodes/tolerations.ts';
import { preferredOf } from './rules/preference/prefer.ts';
import { reason } from './rules/rules.ts';
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
  const labels = nodeLabelsOf(now, draft, required);
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
      ...warnIfOwnTermsExclude(now, required),
      ...warnIfWrongNodesMatch(now),
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
      ...explainFit(now.images, required),
      ...classes.reasons,
      ...nodes.reasons,
    ],
  };
  return template === 'workload' ? unchangedTemplate(decision, now) : decision;
}

/** Reasons that do not change the outcome. */
function explainDetails({ policy, images, fields, recorded }: RuleInput): readonly Reason[] {
  const { schedulableArchitectures: schedulable } = policy;
  const { terms } = fields;
  const reasons: Reason[] = [];
  const isBounded =
    schedulable.length > 0 &&
    images.some(({ architectures }) => architectures?.some((name) => !schedulable.includes(name)));
  if (isBounded)
    reasons.push(reason('schedulable-architectures', `only ${printable(schedulable.join(', '), 200)}`));
  const free = images.filter(
    ({ architectures, unknown }) => architectures === undefined && unknown === undefined,
  );
  for (const { image, facts } of free.slice(0, maxArchitectures)) {
    reasons.push(reason('image-constrains-nothing', `${printable(image, 200)}: ${whyFree(facts)}`));
  }
  for (const { image, facts } of images) {
    if (facts?.brokenOn === undefined) continue;
    const text = `${printable(image, 200)} ended with an exec format error on ${facts.brokenOn.join(', ')}`;
    reasons.push(reason('exec-format-error', text));
  }
  for (const { image, facts } of images) {
    if (facts?.requiredLevel === undefined) continue;
    reasons.push(reason('cpu-level', `${printable(image, 200)} needs x86-64-v${facts.requiredLevel}`));
  }
  const kept = keptTerms(terms).length;
  if (kept > 0) reasons.push(reason('own-term-constraint', `${kept} of the pod's required terms`));
  if (terms && (terms.length === 0 || terms.some(isEmptyTerm))) {
    reasons.push(reason('empty-term', "the pod's required node affinity has a part that matches no node"));
  }
  if (recorded !== undefined)
    reasons.push(reason('replaces-recorded', 'the additions of an earlier call are replaced'));
  return reasons;
}

function whyFree(facts: ImageVerdict['facts']): string {
  if (facts === undefined) return 'it is never pulled';
  const isWasm = facts.platforms.some(({ architecture }) => isBytecode(architecture));
  return facts.error?.code ?? (isWasm ? 'it is WebAssembly' : 'it has no platform');
}
