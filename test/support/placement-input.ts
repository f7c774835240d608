/** Builders of pods, policies and facts for tests of placement. */
import fastJsonPatch from 'fast-json-patch';
import type { FactsError, ImageFacts } from '../../src/images/facts/facts.ts';
import type { NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec } from '../../src/kube/api/objects.ts';
import { decide } from '../../src/placement/decide.ts';
import { hashText } from '../../src/names/hash.ts';
import type {
  Operation,
  PlacementDecision,
  PlacementInput,
  RecordSeal,
} from '../../src/placement/decision.ts';
import { patchPod } from '../../src/placement/patch/patch.ts';
import type { ArchitectureRules, Policy } from '../../src/policy/effective/policy.ts';
import { facts } from './facts.ts';

export { facts };

export const defaultPolicy: Policy = {
  schedulableArchitectures: [],
  preferences: [],
  preferenceMode: 'soft',
  fallbackArchitecture: undefined,
  onUnknownImage: 'gate',
  onNoCommonArchitecture: 'deny',
  constraints: 'keep',
  matchNodeLabels: [],
  tolerations: [],
  architectures: {},
  excludedNamespaces: ['kube-system'],
  requirePullableNodes: false,
};

export function failed(code: FactsError['code'], message = 'the registry said so'): ImageFacts {
  return facts('', { error: { code, message } });
}

export type Known = Readonly<Record<string, ImageFacts | string>>;

/** Known images as facts, or as the platforms of `facts()`. */
export function factsFrom(known: Known): (image: string) => ImageFacts | undefined {
  return (image) => {
    const entry = Object.hasOwn(known, image) ? known[image] : undefined;
    return typeof entry === 'string' ? facts(entry) : entry;
  };
}

export function podOf(
  images: readonly string[],
  spec: Partial<PodSpec> = {},
  metadata: NonNullable<Pod['metadata']> = {},
): Pod {
  return {
    metadata,
    spec: { containers: images.map((image, index) => ({ name: `c${index}`, image })), ...spec },
  };
}

export function isIn(key: string, ...values: readonly string[]): NodeSelectorRequirement {
  return { key, operator: 'In', values };
}

export function notIn(key: string, ...values: readonly string[]): NodeSelectorRequirement {
  return { key, operator: 'NotIn', values };
}

export const archLabel = 'kubernetes.io/arch';
/** The label of old charts. */
export const betaArchLabel = 'beta.kubernetes.io/arch';

export function archIn(...values: readonly string[]): NodeSelectorRequirement {
  return isIn(archLabel, ...values);
}

/** A pod that names its architecture. */
export function onArch(architecture: string): Pick<PodSpec, 'nodeSelector'> {
  return { nodeSelector: { [archLabel]: architecture } };
}

export function termOf(...matchExpressions: readonly NodeSelectorRequirement[]): NodeSelectorTerm {
  return { matchExpressions };
}

/** Rules of an architecture: labels that its nodes must have. */
export function withLabels(requireNodeLabels: Record<string, string>): ArchitectureRules {
  return { taintsToTolerate: [], requireNodeLabels };
}

export function requiring(...nodeSelectorTerms: readonly NodeSelectorTerm[]): Pick<PodSpec, 'affinity'> {
  return {
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  };
}

/** A pod that must run on the architecture of its group. */
export const together: Pick<PodSpec, 'affinity'> = {
  affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: archLabel }] } },
};

export function termsOf({ spec }: Pod): readonly NodeSelectorTerm[] | undefined {
  return spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
}

/** A forged record does not have it. */
export const seal: RecordSeal = {
  sign: (text) => hashText([text]),
  verify: (text, given) => given === hashText([text]),
};

export function inputOf(
  pod: Pod,
  known: Known = {},
  policy: Partial<Policy> = {},
  more: Partial<PlacementInput> = {},
): PlacementInput {
  return {
    pod,
    namespace: 'shop',
    namespaceLabels: {},
    policy: { ...defaultPolicy, ...policy },
    facts: factsFrom(known),
    ...more,
  };
}

/** Expressions of each required term. */
export function expressionsOf(pod: Pod): readonly unknown[] | undefined {
  return termsOf(pod)?.map(({ matchExpressions }) => matchExpressions);
}

export interface Placed {
  readonly decision: PlacementDecision;
  readonly patch: readonly Operation[];
  readonly pod: Pod;
}

/**
 * Outcome and required architectures: `placed amd64 arm64`; `denied none` for an empty list; `gated` without
 * one.
 */
export function outcomeOf({ outcome, required }: PlacementDecision): string {
  return [outcome, ...(required?.length === 0 ? ['none'] : (required ?? []))].join(' ');
}

export function place(input: PlacementInput): Placed {
  const decision = decide(input);
  const patch = patchPod(input.pod, decision);
  return { decision, patch, pod: applied(input.pod, patch) };
}

/** Places a new pod with these images. */
export function placePod(
  images: readonly string[],
  known?: Known,
  policy?: Partial<Policy>,
  spec?: Partial<PodSpec>,
): Placed {
  return place(inputOf(podOf(images, spec), known, policy));
}

export function applied<Document extends object>(document: Document, patch: readonly Operation[]): Document {
  const copy = structuredClone(document);
  const operations = structuredClone(patch) as Parameters<typeof fastJsonPatch.applyPatch>[1];
  return fastJsonPatch.applyPatch(copy, operations, true, true).newDocument;
}
