/**
 * Pods and templates to which nothing is added: skipped pods, each for a counted reason, and the templates of
 * workloads. Conditions on plain fields are also match conditions of the webhook configuration, so that the API
 * server does not call the webhook.
 */
import type { ObjectMeta, PodSpec } from '../../kube/api/objects.ts';
import { own } from '../../names/values.ts';
import { matchesAny } from '../../names/glob.ts';
import { keys } from '../../names/keys.ts';
import { boundedWarnings, printable } from '../../names/printable.ts';
import { noAdditions, type PlacementDecision, type PlacementInput, type SkipReason } from '../decision.ts';
import { imagesOf, type ImageUse } from '../pod/images.ts';
import { operatingSystemOf, requiredTermsOf } from '../pod/terms.ts';
import { explainNoCommon } from './constraint/no-common.ts';
import type { RuleInput } from './input.ts';
import { reason, rules, type Rule } from './rules.ts';

/** Set by the kubelet on the API's copy of a static pod (kubernetes pkg/kubelet/types/constants.go). */
const mirrorAnnotation = 'kubernetes.io/config.mirror';

const controlPlaneRoles = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];

/**
 * Each term grows by a few hundred bytes or more; people write a few. For a pod of 3 MiB with 85,000 terms, the
 * webhook needed 200 MiB and wrote a patch of 20 MiB, which no object has room for.
 */
const maxTerms = 500;
/** A limit for all terms. A term is copied for each group of architectures with other node labels. */
const maxValues = 10_000;

type SkipInput = Pick<PlacementInput, 'pod' | 'namespace' | 'namespaceLabels' | 'policy'>;

/**
 * Why a pod is skipped: the first reason in the order of `skipReasons`.
 * @param uses the pod's images, if the caller has them already
 */
export function skipReasonOf(input: SkipInput, uses?: readonly ImageUse[]): SkipReason | undefined {
  const { spec, metadata } = input.pod;
  if (spec.nodeName) return 'node-name';
  if (isMirror(metadata)) return 'mirror-pod';
  if (metadata?.ownerReferences?.some((owner) => owner.kind === 'DaemonSet')) return 'daemonset-pod';
  const optedOut = optOutOf(input);
  if (optedOut !== undefined) return optedOut;
  if (controlPlaneRoles.some((role) => own(spec.nodeSelector, role) !== undefined)) return 'control-plane';
  if (hasTooManyTerms(spec)) return 'too-many-terms';
  if ((uses ?? imagesOf(spec)).every((use) => use.pullPolicy === 'Never')) return 'no-image';
  return undefined;
}

export function skipped(
  { pod, template }: Pick<PlacementInput, 'pod' | 'template'>,
  skip: SkipReason,
  warnings: readonly string[],
): PlacementDecision {
  const rule = `skip-${skip}` as const;
  // Nobody expects this; every other reason is stated in the pod or the policy.
  const unexpected = skip === 'too-many-terms' ? [`archwright: this pod is not placed: ${rules[rule]}`] : [];
  return {
    ...noAdditions,
    outcome: 'skipped',
    skip,
    ...(template === undefined ? {} : { template }),
    os: operatingSystemOf(pod.spec),
    images: [],
    warnings: [...warnings, ...unexpected],
    reasons: [reason(rule, rules[rule])],
  };
}

/** Whether a person opted the pod out. This applies to running pods too. */
export function optOutOf({ pod, namespace, namespaceLabels, policy }: SkipInput): SkipReason | undefined {
  if (matchesAny(policy.excludedNamespaces, namespace)) return 'excluded-namespace';
  const { labels, annotations } = pod.metadata ?? {};
  // Match conditions read the label. The annotation is accepted because people try both.
  if ([labels, annotations].some((each) => own(each, keys.placement) === 'disabled'))
    return 'disabled-by-pod';
  return own(namespaceLabels, keys.placement) === 'disabled' ? 'disabled-by-namespace' : undefined;
}

/**
 * The architecture of the node that a new pod, or a template, names itself.
 * @returns `undefined` if it names none, is skipped for another reason too, or the architecture is not known
 */
export function namedNodeArchitecture(
  input: SkipInput & Pick<PlacementInput, 'nodeArchitecture'>,
): string | undefined {
  const { spec, metadata } = input.pod;
  if (!spec.nodeName || isMirror(metadata) || optOutOf(input) !== undefined) return undefined;
  return input.nodeArchitecture?.(spec.nodeName);
}

function isMirror(metadata: ObjectMeta | undefined): boolean {
  return own(metadata?.annotations, mirrorAnnotation) !== undefined;
}

/** A value that is probably meant to skip the pod, but does not. */
export function placementMistakes({ pod: { metadata } }: Pick<SkipInput, 'pod'>): readonly string[] {
  return (['label', 'annotation'] as const).flatMap((kind) => {
    const value = own(kind === 'label' ? metadata?.labels : metadata?.annotations, keys.placement);
    if (!value || value === 'enabled') return [];
    const name = `${kind} ${keys.placement}`;
    return [`archwright: ${name}: ${printable(value, 63)} has no effect; disabled skips the pod`];
  });
}

function hasTooManyTerms(spec: PodSpec): boolean {
  const terms = requiredTermsOf(spec) ?? [];
  if (terms.length > maxTerms) return true;
  let values = 0;
  for (const { matchExpressions, matchFields } of terms) {
    for (const list of [matchExpressions, matchFields])
      for (const expression of list ?? []) values += 1 + (expression.values?.length ?? 0);
  }
  return values > maxValues;
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
export function unchangedTemplate(
  { os, images, required, warnings, reasons }: PlacementDecision,
  input: RuleInput,
): PlacementDecision {
  const { common } = input;
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
    warnings:
      required?.length === 0
        ? boundedWarnings([`archwright: pods of this template cannot be placed: ${explainNoCommon(input)}`])
        : warnings,
    reasons: [reason('workload-template', message), ...reasons.filter(({ rule }) => rulesOfPods.has(rule))],
  };
}
