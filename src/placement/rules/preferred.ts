/**
 * Preferred architectures. The first source applies that the images can meet at least in part: the pod's
 * label, the pod's annotation of weights, the preferences of the policy (custom resources by priority, then
 * the configuration). If a person wrote a preference into the pod that cannot be met, a warning is returned.
 *
 * The pod's own preferred node affinity on an architecture has precedence over all of these. A DaemonSet has
 * no preference, because it runs on every node. The template of another workload has the preference of its
 * pods, for warnings. While an image is unknown, preferences wait: they could draw the pod to a node that
 * cannot run that image. Images that constrain nothing can meet every preference.
 */
import {
  isArchitecture,
  isArchitectureKey,
  maxArchitectures,
  unknownArchitecture,
} from '../../names/architecture.ts';
import { byName, own } from '../../names/values.ts';
import { keys } from '../../names/keys.ts';
import { printable } from '../../names/printable.ts';
import type { Policy, Preference as PolicyPreference } from '../../policy/effective/policy.ts';
import type { Outcome, OwnFields, PlacementInput, Reason } from '../decision.ts';
import { permittedBy } from '../pod/terms.ts';
import { reason, type Draft, type Rule } from './rules.ts';

export interface WeightedArchitecture {
  readonly architecture: string;
  /** 1–100, as in preferred node affinity. */
  readonly weight: number;
}

interface Preference {
  readonly rule: Rule;
  readonly origin: string;
  /** A person wrote it into the pod. */
  readonly inPod: boolean;
  /** `undefined`: invalid. */
  readonly weights: readonly WeightedArchitecture[] | undefined;
}

const labelWeight = 100;

/** Enough for 16 architectures of 63 characters with their weights. */
const maxWeightsLength = 1152;

/** Outcomes with which nothing is preferred, whatever the policy. */
const withoutPreference: ReadonlySet<Outcome> = new Set(['own-constraint', 'denied', 'pending']);

/**
 * @param certain required architectures on which the images run for sure
 * @returns `required`: the architectures that the pod may have: under mode `hard` only the preferred one
 */
export function preferredOf(
  { pod, policy, template }: Pick<PlacementInput, 'pod' | 'policy' | 'template'>,
  fields: OwnFields,
  draft: Draft,
  certain: readonly string[] | undefined,
) {
  const { outcome, required } = draft;
  const isSettled = withoutPreference.has(outcome);
  // A pin would take away the architectures that the pod named itself.
  const mode = isSettled || draft.widened ? 'soft' : policy.preferenceMode;
  const preferences = isSettled || template === 'DaemonSet' ? [] : preferencesOf(pod.metadata, policy);
  if (preferences.length === 0) return { required, preferred: [], mode, warnings: [], reasons: [] };
  if (prefersItself(fields)) {
    const message = 'the pod prefers architectures by its own node affinity and keeps that';
    return { required, preferred: [], mode, warnings: [], reasons: [reason('preference-own', message)] };
  }
  const isKnown = outcome === 'placed' || outcome === 'unconstrained';
  const bound = isKnown ? boundOf(draft, policy, certain) : [];
  const isPossible = (name: string): boolean =>
    (bound?.includes(name) ?? unknownArchitecture(name) === undefined) && permittedBy(fields.terms, name);
  const warnings: string[] = [];
  const reasons: Reason[] = [];
  for (const preference of preferences) {
    const { weights, inPod } = preference;
    if (weights?.length === 0) continue;
    const met = weights?.filter(({ architecture }) => isPossible(architecture)) ?? [];
    if (met.length !== weights?.length) {
      const mistake = firstMistake(preference, [...(bound ?? []), ...policy.schedulableArchitectures]);
      const unmet = isKnown ? describeUnmet(preference, isPossible, bound) : describePostponed(preference);
      const text = mistake ?? unmet;
      reasons.push(reason('preference-left-out', text));
      // A gated pod is decided again once its images are known, and so are the pods of a template.
      const isDecidedAgain = policy.onUnknownImage === 'gate' || template !== undefined;
      const isPostponed = !isKnown && weights !== undefined && isDecidedAgain && mistake === undefined;
      if (inPod && !isPostponed) warnings.push(`archwright: ${text}`);
    }
    if (met.length === 0) continue;
    const preferred = met.toSorted((a, b) => b.weight - a.weight || byName(a.architecture, b.architecture));
    const chosen = mode === 'hard' ? preferred.slice(0, 1) : preferred;
    const names = chosen.map(({ architecture }) => architecture);
    const text = chosen.map(({ architecture, weight }) => `${architecture}=${weight}`).join(', ');
    reasons.push(reason(preference.rule, `${preference.origin} prefers ${text}`));
    if (mode === 'hard') reasons.push(reason('preference-hard', `${names.join()} is required`));
    return { required: mode === 'hard' ? names : required, preferred: chosen, mode, warnings, reasons };
  }
  return { required, preferred: [], mode, warnings, reasons };
}

/** Whether a person pinned the pod by its own label or annotation. */
export function isPinnedByLabel({ pod, policy }: Pick<PlacementInput, 'pod' | 'policy'>): boolean {
  return policy.preferenceMode === 'hard' && preferencesOf(pod.metadata, policy).some(({ inPod }) => inPod);
}

function preferencesOf(metadata: PlacementInput['pod']['metadata'], policy: Policy): readonly Preference[] {
  const preferences: Preference[] = [];
  const [name, label] = labelOf(metadata?.labels, policy.preferredLabels);
  if (label) {
    const weights = isArchitecture(label) ? [{ architecture: label, weight: labelWeight }] : undefined;
    preferences.push({ rule: 'preferred-label', origin: `label ${name}`, inPod: true, weights });
  }
  const annotation = own(metadata?.annotations, keys.preferredWeights);
  if (annotation) {
    const origin = `annotation ${keys.preferredWeights}`;
    preferences.push({ rule: 'preferred-weights', origin, inPod: true, weights: parseWeights(annotation) });
  }
  if (policy.preference) preferences.push(ofPolicy(policy.preference));
  if (policy.otherPreferences) preferences.push(...policy.otherPreferences.map(ofPolicy));
  return preferences;
}

/** Archwright's label, else the first of the others that the pod has. */
function labelOf(
  labels: Readonly<Record<string, string>> | undefined,
  others: readonly string[] | undefined,
): readonly [name: string, label: string | undefined] {
  const label = own(labels, keys.preferred);
  if (label || others === undefined) return [keys.preferred, label];
  const name = others.find((other) => own(labels, other)) ?? keys.preferred;
  return [name, own(labels, name)];
}

function ofPolicy({ origin, weights }: PolicyPreference): Preference {
  const valid = Object.entries(weights)
    .map(([architecture, weight]) => ({ architecture, weight }))
    .filter(({ architecture, weight }) => isArchitecture(architecture) && isWeight(weight));
  return { rule: 'preferred-policy', origin, inPod: false, weights: valid };
}

/**
 * Reads the annotation of weights, such as `arm64=80,amd64=20`.
 * @returns `undefined` if any part is invalid
 */
export function parseWeights(text: string): readonly WeightedArchitecture[] | undefined {
  if (text.length > maxWeightsLength) return undefined;
  const weights: WeightedArchitecture[] = [];
  for (const part of text.split(',')) {
    const [, architecture, digits] = /^\s*([^\s=]+)\s*=\s*([0-9]{1,3})\s*$/u.exec(part) ?? [];
    const weight = Number(digits);
    if (architecture === undefined || !isArchitecture(architecture) || !isWeight(weight)) return undefined;
    if (weights.some((other) => other.architecture === architecture)) return undefined;
    weights.push({ architecture, weight });
  }
  return weights.length > maxArchitectures ? undefined : weights;
}

function isWeight(weight: number): boolean {
  return Number.isInteger(weight) && weight >= 1 && weight <= 100;
}

function prefersItself({ preferred }: OwnFields): boolean {
  return preferred.own.some(({ preference }) =>
    preference?.matchExpressions?.some(({ key }) => isArchitectureKey(key)),
  );
}

/** The architectures that the images can run on; `undefined`: any. */
function boundOf(
  { reasons: [why] }: Draft,
  { schedulableArchitectures: schedulable }: Policy,
  certain: readonly string[] = [],
): readonly string[] | undefined {
  if (why?.rule !== ('unconstrained' satisfies Rule)) return certain;
  return schedulable.length === 0 ? undefined : schedulable;
}

/** The first name that is probably a mistake. @param others names that are none */
function firstMistake({ origin, weights = [] }: Preference, others: readonly string[]): string | undefined {
  for (const { architecture } of weights) {
    const mistake = unknownArchitecture(architecture, others);
    if (mistake !== undefined) return `${origin}: ${mistake}`;
  }
  return undefined;
}

function describeUnmet(
  { origin, weights }: Preference,
  isPossible: (architecture: string) => boolean,
  bound: readonly string[] | undefined,
): string {
  if (weights === undefined) return invalid(origin);
  const unmet = weights.filter(({ architecture }) => !isPossible(architecture));
  const why =
    bound === undefined
      ? "the pod's own node affinity excludes it"
      : `the pod can only run on ${printable(bound.filter(isPossible).join(', '), 80) || 'none'}`;
  return `${origin}: ${namesOf(unmet)} is ignored, ${why}`;
}

function describePostponed({ origin, weights }: Preference): string {
  return weights === undefined
    ? invalid(origin)
    : `${origin}: ${namesOf(weights)} waits until every image is known`;
}

function invalid(origin: string): string {
  return `${origin} is invalid and ignored`;
}

function namesOf(weights: readonly WeightedArchitecture[]): string {
  return printable(weights.map(({ architecture }) => architecture).join(', '), 80);
}
