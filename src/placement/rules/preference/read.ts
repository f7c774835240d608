/** The preferences for a pod, in their order: its label, its annotation of weights, those of its policy. */
import { isArchitecture, maxArchitectures } from '../../../names/architecture.ts';
import { keys } from '../../../names/keys.ts';
import { own } from '../../../names/values.ts';
import type { Policy } from '../../../policy/effective/policy.ts';
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
  // Archwright's label, else the first of the others that the pod has.
  const names = [keys.preferred, ...(policy.preferredLabels ?? [])];
  const name = names.find((each) => own(metadata?.labels, each));
  if (name !== undefined) {
    const label = own(metadata?.labels, name) ?? '';
    const weights = isArchitecture(label) ? [{ architecture: label, weight: labelWeight }] : undefined;
    preferences.push({ rule: 'preferred-label', origin: `label ${name}`, inPod: true, weights });
  }
  const annotation = own(metadata?.annotations, keys.preferredWeights);
  if (annotation) {
    const origin = `annotation ${keys.preferredWeights}`;
    preferences.push({ rule: 'preferred-weights', origin, inPod: true, weights: parseWeights(annotation) });
  }
  for (const { origin, weights } of policy.preferences) {
    const list = Object.entries(weights).map(([architecture, weight]) => ({ architecture, weight }));
    preferences.push({ rule: 'preferred-policy', origin, inPod: false, weights: list });
  }
  return preferences;
}

/** Reads weights such as `arm64=80,amd64=20`. @returns `undefined` if any part is invalid */
export function parseWeights(text: string): readonly WeightedArchitecture[] | undefined {
  if (text.length > maxWeightsLength) return undefined;
  const weights: WeightedArchitecture[] = [];
  for (const part of text.split(',')) {
    const [, architecture, digits] = /^\s*([^\s=]+)\s*=\s*([0-9]{1,3})\s*$/u.exec(part) ?? [];
    const weight = Number(digits);
    if (architecture === undefined || !isArchitecture(architecture) || weight < 1 || weight > 100)
      return undefined;
    if (weights.some((other) => other.architecture === architecture)) return undefined;
    weights.push({ architecture, weight });
  }
  return weights.length > maxArchitectures ? undefined : weights;
}
