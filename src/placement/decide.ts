/**
 * The decision, step by step; each step is a file of its own:
 * 1. `skip.ts`: pods that are left alone.
 * 2. `images-of-pod.ts`, `required.ts`: what the images allow.
 * 3. One of: `workload.ts` (a template that is only looked at), `own-constraint.ts` (the pod chose itself),
 *    `no-common.ts` (nothing runs all images), `unknown.ts` (an image is not known), or plainly the required architectures.
 * 4. `preferred.ts`, `tolerations.ts`, `node-labels.ts`, `pullable-nodes.ts`: what comes on top.
 *
 * `recorded.ts` and `own-parts.ts` first take out what an earlier call added, so that a second call decides as the first.
 */
import type {
  ImageVerdict,
  Outcome,
  PlacementDecision,
  PlacementInput,
  Reason,
  Recorded,
  SkipReason,
} from './decision.ts';
import type { Policy } from '../policy/effective/policy.ts';
import { isBytecode, maxArchitectures } from '../names/architecture.ts';
import type { Draft } from './rules/draft.ts';
import { imagesOf } from './pod/images.ts';
import { noCommonArchitecture } from './rules/no-common.ts';
import { labelsByArchitecture, matchedNodeLabels } from './rules/node-labels.ts';
import { keepOwnConstraint, ownConstraintOf } from './rules/own-constraint.ts';
import { operatingSystemOf } from './pod/operating-system.ts';
import { ownFieldsOf } from './record/own-fields.ts';
import type { OwnFields } from './record/own-fields.ts';
import { preferredOf } from './rules/preferred.ts';
import { excludedNodesOf } from './rules/pullable-nodes.ts';
import { imagesKeyOf, recordedIn } from './record/read.ts';
import { commonArchitectures, verdictsOf, withinAllowed } from './rules/required.ts';
import { describeRule, reason, skipRule } from './rules/rules.ts';
import { skipReasonOf } from './rules/skip.ts';
import { constrainsItself, isEmptyTerm, permits } from './pod/terms.ts';
import { boundedWarnings, printable } from '../names/printable.ts';
import { tolerationsFor, tolerationsForAny } from './rules/tolerations.ts';
import { recordedBound, unknownImage } from './rules/unknown.ts';
import { lookAtTemplate } from './rules/workload-template.ts';

/**
 * Decides where a pod may run. Pure: the same input gives the same decision.
 * @param input the pod, its policy, and what is known of its images
 */
export function decide(input: PlacementInput): PlacementDecision {
  const { pod, policy } = input;
  const os = operatingSystemOf(pod.spec);
  const uses = imagesOf(pod.spec);
  const skip = skipReasonOf(input, uses);
  if (skip !== undefined) return skipped(input, os, skip);
  const images = verdictsOf(uses, os, input.facts);
  const shared = commonArchitectures(images, policy.schedulableArchitectures);
  const common = withinAllowed(shared, policy);
  if (input.template === 'workload') return lookAtTemplate(policy, os, images, common);
  const recorded = recordedIn(input);
  const parts = ownFieldsOf(pod.spec, recorded);
  const draft = draftOf(input, { os, images, shared, common, recorded, parts });
  return completed(input, { os, images, recorded, parts }, draft);
}

/** Outcomes that let a pod run wherever it likes, where they require nothing. (One that names its node says no architecture.) */
const mayRunAnywhere: ReadonlySet<Outcome> = new Set([
  'unconstrained',
  'allowed-unknown',
  'fallback',
  'own-constraint',
]);

interface Found {
  readonly os: string;
  readonly images: readonly ImageVerdict[];
  /** What the known images share. */
  readonly shared: readonly string[] | undefined;
  /** The same within what custom resources allow. */
  readonly common: readonly string[] | undefined;
  readonly recorded: Recorded | undefined;
  readonly parts: OwnFields;
}

function draftOf(input: PlacementInput, { os, images, shared, common, recorded, parts }: Found): Draft {
  const constraint = ownConstraintOf(parts);
  if (constraint !== undefined) return keepOwnConstraint(constraint, shared, images);
  if (common?.length === 0) return noCommonArchitecture(input.policy, images);
  if (images.some((image) => image.unknown !== undefined)) {
    const earlier = recorded ?? (input.before && recordedIn({ ...input, pod: input.before }));
    const bound = recordedBound(input, earlier, imagesKeyOf(os, images), common);
    if (bound === undefined) return unknownImage(input, images, common);
    const text = `the same images were placed on ${bound.join(', ')} before`;
    return { ...placed(bound), reasons: [reason('unknown-image-recorded', text)] };
  }
  if (common === undefined) {
    const reasons = [reason('unconstrained', 'no image constrains the architecture')];
    return { outcome: 'unconstrained', required: undefined, warnings: [], reasons };
  }
  return placed(common);
}

function placed(required: readonly string[]): Draft {
  const text = `all known images can run on ${required.join(', ')}`;
  return { outcome: 'placed', required, warnings: [], reasons: [reason('required-architectures', text)] };
}

function completed(
  input: PlacementInput,
  { os, images, recorded, parts }: Omit<Found, 'shared' | 'common'>,
  draft: Draft,
): PlacementDecision {
  const { pod, policy } = input;
  const known = draft.outcome === 'placed' || draft.outcome === 'unconstrained';
  const settled =
    draft.outcome === 'own-constraint' || draft.outcome === 'denied' || draft.outcome === 'pending';
  const preference = settled ? undefined : preferredOf(input, parts, draft.required, known);
  const pinned = preference?.mode === 'hard' ? preference.preferred[0]?.architecture : undefined;
  const required = pinned === undefined ? draft.required : [pinned];
  const tolerations = addedTolerations(policy, { ...draft, required }, parts);
  const nodeLabels = matchedNodeLabels(policy, pod.metadata?.labels);
  const nodeLabelsByArchitecture = labelsByArchitecture(policy, required);
  const nodes = excludedNodesOf(input, parts, images, { ...draft, required });
  const excluded = excludedByPod(parts, required);
  const reasons: Reason[] = [
    ...draft.reasons,
    ...allowedReasons(policy, draft),
    ...(preference?.reasons ?? []),
    ...detailReasons(input, images, parts, recorded),
  ];
  if (tolerations.length > 0) reasons.push(reason('tolerations', `${tolerations.length} added`));
  for (const [architecture, labels] of Object.entries(nodeLabelsByArchitecture)) {
    reasons.push(reason('require-node-labels', `${architecture}: ${describeLabels(labels)}`));
  }
  if (Object.keys(nodeLabels).length > 0)
    reasons.push(reason('match-node-labels', describeLabels(nodeLabels)));
  reasons.push(...nodes.reasons);
  return {
    outcome: draft.outcome,
    ...(input.template === undefined ? {} : { template: input.template }),
    ...(recorded === undefined ? {} : { replaces: recorded }),
    os,
    images,
    required,
    preferred: preference?.preferred ?? [],
    preferenceMode: preference?.mode ?? 'soft',
    nodeLabelsByArchitecture,
    nodeLabels,
    excludedNodes: nodes.hostnames,
    tolerations,
    gate: draft.gate ?? false,
    ...(draft.message === undefined ? {} : { message: draft.message }),
    warnings: boundedWarnings([
      ...draft.warnings,
      ...excluded,
      ...nodes.warnings,
      ...(preference?.warnings ?? []),
    ]),
    reasons,
  };
}

/**
 * A pod behind our gate gets none yet: a toleration can never be taken from a pod again, and what is not known may leave fewer
 * architectures than are possible now.
 */
function addedTolerations(
  policy: Policy,
  { gate, tolerated, required, outcome }: Draft,
  parts: OwnFields,
): PlacementDecision['tolerations'] {
  if (gate === true) return [];
  const architectures = tolerated ?? required;
  if (architectures === undefined && mayRunAnywhere.has(outcome)) {
    return tolerationsForAny(policy, parts.tolerations.own);
  }
  return tolerationsFor(policy, architectures ?? [], parts.tolerations.own);
}

/** What took part without changing the course: kept terms, images without a say, the bound of the cluster. */
function detailReasons(
  { policy }: PlacementInput,
  images: readonly ImageVerdict[],
  parts: OwnFields,
  recorded: Recorded | undefined,
): readonly Reason[] {
  const reasons: Reason[] = [];
  const { schedulableArchitectures: schedulable } = policy;
  const bounded =
    schedulable.length > 0 &&
    images.some(({ architectures }) => architectures?.some((name) => !schedulable.includes(name)));
  if (bounded)
    reasons.push(reason('schedulable-architectures', `only ${printable(schedulable.join(', '), 200)}`));
  const silent = images.filter(
    ({ architectures, unknown }) => architectures === undefined && unknown === undefined,
  );
  for (const { image, facts } of silent.slice(0, maxArchitectures)) {
    reasons.push(reason('image-constrains-nothing', `${printable(image, 200)}: ${whySilent(facts)}`));
  }
  for (const { image, facts } of images) {
    if (facts?.brokenOn === undefined) continue;
    const where = facts.brokenOn.join(', ');
    reasons.push(
      reason('exec-format-error', `${printable(image, 200)} ended with an exec format error on ${where}`),
    );
  }
  const kept = parts.terms?.filter((term) => !isEmptyTerm(term) && constrainsItself(term)).length ?? 0;
  if (kept > 0) reasons.push(reason('own-term-constraint', `${kept} of the pod's required terms`));
  if (parts.terms && (parts.terms.length === 0 || parts.terms.some(isEmptyTerm))) {
    reasons.push(reason('empty-term', "the pod's required node affinity has a part that matches no node"));
  }
  if (recorded !== undefined)
    reasons.push(reason('replaces-recorded', 'what an earlier call added is replaced'));
  return reasons;
}

function whySilent(facts: ImageVerdict['facts']): string {
  if (facts === undefined) return 'it is never pulled';
  const isWasm = facts.platforms.some(({ architecture }) => isBytecode(architecture));
  return facts.error?.code ?? (isWasm ? 'it is WebAssembly' : 'it has no platform');
}

/** Who chose itself keeps that, whatever a custom resource says. */
function allowedReasons({ allowed }: Policy, { outcome }: Draft): readonly Reason[] {
  if (allowed === undefined || outcome === 'own-constraint') return [];
  const { architectures, origin } = allowed;
  const text = `${printable(origin, 320)} allows ${printable(architectures.join(', '), 200)}`;
  return [reason('allowed-architectures', text)];
}

/** Ours is ANDed beside a `NotIn` of the pod; where nothing is left of both, the pod stays pending and says so. */
function excludedByPod({ terms }: OwnFields, required: readonly string[] | undefined): readonly string[] {
  if (terms === undefined || terms.length === 0 || !required?.length) return [];
  if (terms.some((term) => required.some((architecture) => permits(term, architecture)))) return [];
  return [
    `archwright: the pod's own node affinity excludes all that its images can run on: ${required.join(', ')}`,
  ];
}

function describeLabels(labels: Readonly<Record<string, string>>): string {
  const text = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return printable(text.join(', '), 400);
}

function skipped(input: PlacementInput, os: string, skip: SkipReason): PlacementDecision {
  const rule = skipRule(skip);
  return {
    outcome: 'skipped',
    skip,
    ...(input.template === undefined ? {} : { template: input.template }),
    os,
    images: [],
    required: undefined,
    preferred: [],
    preferenceMode: 'soft',
    nodeLabelsByArchitecture: {},
    nodeLabels: {},
    excludedNodes: [],
    tolerations: [],
    gate: false,
    warnings: [],
    reasons: [reason(rule, describeRule(rule) ?? '')],
  };
}
