/** The decision: a line for each rule, in the order of docs/use/placement.md. Each rule has its own file. */
import { noAdditions, type PlacementDecision, type PlacementInput } from './decision.ts';
import { boundedWarnings } from '../names/printable.ts';
import { imagesOf } from './pod/images.ts';
import { operatingSystemOf } from './pod/operating-system.ts';
import { ownFieldsOf } from './record/own-fields.ts';
import { recordedIn, recordedWidened } from './record/read.ts';
import { explainAllowed, explainDetails } from './rules/details.ts';
import { explainNoCommon, noCommonArchitecture } from './rules/no-common.ts';
import { certainOf, explainFit, restrictToClasses, withinClasses } from './rules/node-classes.ts';
import { matchedArchitectures, nodeLabelsOf, withinMatchedLabels } from './rules/node-labels.ts';
import { keepOwnConstraint, warnIfOwnTermsExclude, warnIfWrongNodesMatch } from './rules/own-constraint.ts';
import { preferredOf } from './rules/preferred.ts';
import { excludedNodesOf } from './rules/pullable-nodes.ts';
import { commonArchitectures, requiredArchitectures, verdictsOf, withinAllowed } from './rules/required.ts';
import { withinRollout } from './rules/rollout.ts';
import { skipped, skipReasonOf } from './rules/skip.ts';
import { addedTolerations } from './rules/tolerations.ts';
import { unknownImage } from './rules/unknown.ts';
import { reason, type Rule } from './rules/rules.ts';
import { widenConstraint } from './rules/widen.ts';
import { namedNodeWarnings } from './running-pod.ts';

export function decide(input: PlacementInput): PlacementDecision {
  const { pod, policy, template } = input;
  const os = operatingSystemOf(pod.spec);
  const uses = imagesOf(pod.spec);
  const skip = skipReasonOf(input, uses);
  if (skip !== undefined) return skipped(input, os, skip, namedNodeWarnings(input));

  const { schedulableArchitectures: schedulable } = policy;
  const images = verdictsOf(uses, os, input.facts, input.nodes, schedulable);
  const fit = withinClasses(commonArchitectures(images, schedulable), images, input.nodes, os);
  const shared = fit.architectures;
  const podLabels = pod.metadata?.labels;
  const common = withinMatchedLabels(withinAllowed(shared, policy), policy, podLabels);
  const recorded = recordedIn(input) ?? (input.before && recordedIn({ ...input, pod: input.before }));
  const fields = ownFieldsOf(pod.spec, recorded);
  const widening = widenConstraint(input, fields, images, fit, common);
  const own = widening?.fields ?? fields;
  const base =
    widening?.draft ??
    keepOwnConstraint(own, shared, images, matchedArchitectures(policy, podLabels)) ??
    noCommonArchitecture(policy, images, common, podLabels) ??
    unknownImage(input, os, images, common, own, recorded) ??
    requiredArchitectures(common);
  const { draft, rollout } = withinRollout(base, input, own);
  const preference = preferredOf(input, own, draft, certainOf(images, draft.required, input.nodes, os));
  const { required } = preference;
  const tolerations = addedTolerations(policy, draft, required, own);
  const labels = nodeLabelsOf(policy, podLabels, required, draft.keptArchitectures);
  const restriction = restrictToClasses(input, own, images, os, fit, draft, required);
  const nodes = excludedNodesOf(input, own, images, draft, required, restriction.hostnames);
  const widened = draft.widened ?? (input.waiting ? recordedWidened(input) : undefined);
  const decision: PlacementDecision = {
    outcome: draft.outcome,
    ...(template === undefined ? {} : { template }),
    own,
    ...(widened && { widened }),
    ...(recorded === undefined ? {} : { replaces: recorded }),
    ...(input.seal === undefined ? {} : { seal: input.seal }),
    os,
    images,
    required,
    preferred: preference.preferred,
    preferenceMode: preference.mode,
    nodeLabelsByArchitecture: labels.byArchitecture,
    nodeLabels: labels.matched,
    ...(restriction.amd64Level && { amd64Level: restriction.amd64Level }),
    excludedNodes: nodes.hostnames,
    tolerations: tolerations.added,
    gate: draft.gate ?? false,
    ...(rollout && { rollout }),
    ...(draft.message === undefined ? {} : { message: draft.message }),
    warnings: boundedWarnings([
      ...draft.warnings,
      ...warnIfOwnTermsExclude(own, required),
      ...warnIfWrongNodesMatch(own, shared, input),
      ...restriction.warnings,
      ...nodes.warnings,
      ...preference.warnings,
    ]),
    reasons: [
      ...draft.reasons,
      ...(widening?.reasons ?? []),
      ...explainAllowed(policy, draft.outcome),
      ...preference.reasons,
      ...explainDetails(policy, images, own, recorded),
      ...tolerations.reasons,
      ...labels.reasons,
      ...explainFit(images, required),
      ...restriction.reasons,
      ...nodes.reasons,
    ],
  };
  return template === 'workload' ? unchangedTemplate(decision, input, common) : decision;
}

/** What holds for the pods of a template too. */
const rulesOfPods: ReadonlySet<string> = new Set<Rule>([
  'constraint-widened',
  'constraint-not-widened',
  'exec-format-error',
  'cpu-level',
]);

/**
 * Templates of workloads stay unchanged, because their pods are placed when they are created. A controller
 * creates these, so the person who applies the template gets the warnings about them.
 */
function unchangedTemplate(
  { os, images, warnings, reasons }: PlacementDecision,
  { policy, pod }: PlacementInput,
  common: readonly string[] | undefined,
): PlacementDecision {
  const why = explainNoCommon(images, policy, pod.metadata?.labels);
  const refusal = `archwright: pods of this template cannot be placed: ${why}`;
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
    warnings: common?.length === 0 ? boundedWarnings([refusal]) : warnings,
    reasons: [reason('workload-template', message), ...reasons.filter(({ rule }) => rulesOfPods.has(rule))],
  };
}
