/**
 * Preferred architectures. Asked in this order: the pod's label, the pod's annotation of weights, the preferences
 * of the policy (custom resources by priority, then the configuration). The first that the images can meet, at
 * least in part, applies. One that a person wrote into the pod and that cannot be met gives a warning.
 *
 * The pod's own preferred node affinity on an architecture wins over all of these. A DaemonSet has no use for a
 * preference: it wants every node. While an image is unknown, a preference could draw the pod to a node that cannot run
 * it, so it waits until all are known.
 */
import type { Policy, Preference, PreferenceMode } from '../../policy/effective/policy.ts';
import {
  byName,
  isArchitecture,
  isArchitectureKey,
  maxArchitectures,
  own,
} from '../../names/architecture.ts';
import { keys } from '../../names/keys.ts';
import type { PlacementInput, Reason } from '../decision.ts';
import type { OwnFields } from '../record/own-fields.ts';
import { reason } from './rules.ts';
import type { Rule } from './rules.ts';
import { permits } from '../pod/terms.ts';
import { printable } from '../../names/printable.ts';

export interface WeightedArchitecture {
  readonly architecture: string;
  /** 1–100, as preferred node affinity has it. */
  readonly weight: number;
}

export interface PreferenceResult {
  readonly preferred: readonly WeightedArchitecture[];
  readonly mode: PreferenceMode;
  readonly warnings: readonly string[];
  readonly reasons: readonly Reason[];
}

interface Wish {
  readonly rule: Rule;
  readonly origin: string;
  readonly asked: boolean;
  /** `undefined`: not understood. */
  readonly weights: readonly WeightedArchitecture[] | undefined;
}

const labelWeight = 100;

/** Sixteen architectures of 63 characters with their weights fit. */
const maxWeightsLength = 1152;

const noWishes: readonly Wish[] = [];

/**
 * What is preferred for a pod.
 * @param required the architectures that it may have; `undefined` where none are required
 * @param known false while an image is unknown
 */
export function preferredOf(
  input: Pick<PlacementInput, 'pod' | 'policy' | 'template'>,
  parts: OwnFields,
  required: readonly string[] | undefined,
  known: boolean,
): PreferenceResult {
  const { policy } = input;
  const mode = preferenceModeOf(policy);
  const wishes = input.template === undefined ? wishesOf(input) : noWishes;
  if (wishes.length === 0) return { preferred: [], mode, warnings: [], reasons: [] };
  if (prefersItself(parts)) {
    const message = 'the pod prefers architectures by its own node affinity and keeps that';
    return { preferred: [], mode, warnings: [], reasons: [reason('preference-own', message)] };
  }
  const possible = known
    ? (required ?? []).filter((architecture) => permittedByPod(parts, architecture))
    : [];
  const warnings: string[] = [];
  const reasons: Reason[] = [];
  for (const wish of wishes) {
    const met = wish.weights?.filter(({ architecture }) => possible.includes(architecture)) ?? [];
    if (met.length === wish.weights?.length && met.length === 0) continue;
    if (met.length !== wish.weights?.length) {
      const text = leftOut(wish, possible, known);
      reasons.push(reason('preference-left-out', text));
      // Behind a gate the wish is only put off.
      const putOff = !known && wish.weights !== undefined && policy.onUnknownImage === 'gate';
      if (wish.asked && !putOff) warnings.push(`archwright: ${text}`);
    }
    if (met.length > 0) {
      const preferred = met.toSorted((a, b) => b.weight - a.weight || byName(a.architecture, b.architecture));
      return applied(mode, preferred, wish, warnings, reasons);
    }
  }
  return { preferred: [], mode, warnings, reasons };
}

/** How hard preferences are, also that of a pod where the policy itself prefers nothing. */
export function preferenceModeOf({ preference, preferenceMode }: Policy): PreferenceMode {
  return preference?.mode ?? preferenceMode ?? 'soft';
}

function applied(
  mode: PreferenceMode,
  preferred: readonly WeightedArchitecture[],
  wish: Wish,
  warnings: readonly string[],
  reasons: Reason[],
): PreferenceResult {
  const heaviest = preferred.slice(0, 1);
  const chosen = mode === 'hard' ? heaviest : preferred;
  const text = chosen.map(({ architecture, weight }) => `${architecture}=${weight}`).join(', ');
  reasons.push(reason(wish.rule, `${wish.origin} prefers ${text}`));
  if (mode === 'hard')
    reasons.push(reason('preference-hard', `${heaviest[0]?.architecture ?? ''} is required`));
  return { preferred: chosen, mode, warnings, reasons };
}

function wishesOf({ pod, policy }: Pick<PlacementInput, 'pod' | 'policy'>): readonly Wish[] {
  const { name, label } = labelOf(pod.metadata?.labels, policy.preferredLabels);
  const annotation = own(pod.metadata?.annotations, keys.preferredWeights);
  if (!label && !annotation && policy.preference === undefined) return noWishes;
  const wishes: Wish[] = [];
  if (label) {
    const weights = isArchitecture(label) ? [{ architecture: label, weight: labelWeight }] : undefined;
    wishes.push({ rule: 'preferred-label', origin: `label ${name}`, asked: true, weights });
  }
  if (annotation) {
    const origin = `annotation ${keys.preferredWeights}`;
    wishes.push({ rule: 'preferred-weights', origin, asked: true, weights: parseWeights(annotation) });
  }
  if (policy.preference) wishes.push(policyWish(policy.preference));
  if (policy.otherPreferences) wishes.push(...policy.otherPreferences.map(policyWish));
  return wishes;
}

/** Our label, or where it is absent the first of the others that the pod has. */
function labelOf(
  labels: Readonly<Record<string, string>> | undefined,
  others: readonly string[] | undefined,
): { readonly name: string; readonly label: string | undefined } {
  const label = own(labels, keys.preferred);
  if (label || others === undefined) return { name: keys.preferred, label };
  const name = others.find((other) => own(labels, other)) ?? keys.preferred;
  return { name, label: own(labels, name) };
}

function policyWish({ origin, weights }: Preference): Wish {
  return { rule: 'preferred-policy', origin, asked: false, weights: policyWeights(weights) };
}

/**
 * Reads the annotation of weights, such as `arm64=80,amd64=20`.
 * @returns `undefined` where any part is wrong: half of a wish is another wish
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

function policyWeights(weights: Preference['weights']): readonly WeightedArchitecture[] {
  return Object.entries(weights)
    .map(([architecture, weight]) => ({ architecture, weight }))
    .filter(({ architecture, weight }) => isArchitecture(architecture) && isWeight(weight));
}

function isWeight(weight: number): boolean {
  return Number.isInteger(weight) && weight >= 1 && weight <= 100;
}

function prefersItself(parts: OwnFields): boolean {
  return parts.preferred.own.some(({ preference }) =>
    preference?.matchExpressions?.some(({ key }) => isArchitectureKey(key)),
  );
}

function permittedByPod({ terms }: OwnFields, architecture: string): boolean {
  return terms === undefined || terms.some((term) => permits(term, architecture));
}

function leftOut(wish: Wish, possible: readonly string[], known: boolean): string {
  if (wish.weights === undefined) return `${wish.origin} is not understood and left out`;
  const unmet = wish.weights.filter(({ architecture }) => !possible.includes(architecture));
  const wanted = printable(unmet.map(({ architecture }) => architecture).join(', '), 80);
  if (!known) return `${wish.origin}: ${wanted} waits until every image is known`;
  const can = possible.length === 0 ? 'none' : printable(possible.join(', '), 80);
  return `${wish.origin}: ${wanted} is left out, the pod can only run on ${can}`;
}
