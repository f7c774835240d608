/** The preferences for a pod, in their order: its label, its annotation of weights, those of its policy. */
import { isArchitecture, maxArchitectures } from '../../../names/architecture.ts';
import { keys } from '../../../names/keys.ts';
import { own } from '../../../names/values.ts';
import type { Policy, Preference as PolicyPreference } from '../../../policy/effective/policy.ts';
import type { PlacementInput } from '../../decision.ts';
import type { Rule } from '../rules.ts';

export interface WeightedArchitecture {
  readonly architecture: string;
  /** 1–100, as in preferred node affinity. */
  readonly weight: number;
}

export interface Preference {
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

export function preferencesOf(
  metadata: PlacementInput['pod']['metadata'],
  policy: Policy,
): readonly Preference[] {
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
  for (const preference of policy.preferences) preferences.push(ofPolicy(preference));
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
  const list = Object.entries(weights).map(([architecture, weight]) => ({ architecture, weight }));
  return { rule: 'preferred-policy', origin, inPod: false, weights: list };
}

/** Reads weights such as `arm64=80,amd64=20`. @returns `undefined` if any part is invalid */
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
