/**
 * Placement: from a pod, image facts and a policy to a decision, and from the decision to a JSON patch. Pure: no clock,
 * no randomness, no input or output; the same values in give the same bytes out.
 *
 * This file holds the words of the decision. `decide.ts` makes it; `patch.ts` writes it; each rule has a file of its own.
 */
import type { ImageFacts } from '../images/facts/facts.ts';
import type {
  NodeSelectorRequirement,
  Pod,
  PodTemplate,
  PreferredSchedulingTerm,
  Toleration,
} from '../kube/api/objects.ts';
import type { Policy, PreferenceMode } from '../policy/effective/policy.ts';

/** Nodes with the same credential sources: what one can pull, all of them can. */
export interface NodeGroup {
  /** For people. */
  readonly name: string;
  /** Values of the nodes' label `kubernetes.io/hostname`, as far as they are known. */
  readonly hostnames: readonly string[];
  /** Architectures of the nodes; empty: not known. */
  readonly architectures: readonly string[];
}

/** What is known of the groups that can pull an image, and of those that cannot. */
export interface Pullability {
  readonly able: readonly NodeGroup[];
  readonly unable: readonly NodeGroup[];
}

/** What a decision needs to know; nothing else is looked at. */
export interface PlacementInput {
  readonly pod: Pod | PodTemplate;
  /** Namespace of the request; a pod in an admission may not carry it. */
  readonly namespace: string;
  readonly namespaceLabels: Readonly<Record<string, string>>;
  readonly policy: Policy;
  /** Facts by image text as the pod writes it; `undefined`: not known yet. */
  readonly facts: (image: string) => ImageFacts | undefined;
  /** Who can pull an image, by its text as the pod writes it; looked at under `requirePullableNodes` only. */
  readonly pullability?: (image: string) => Pullability | undefined;
  /** A workload's template is decided like a pod but never gated. */
  readonly template?: 'DaemonSet' | 'workload';
  /** The template before this update; its record counts where the new one was written anew, without any. */
  readonly before?: PodTemplate;
  /**
   * The pod exists and waits behind our gate. Nothing can be taken out of it, so its record is believed even where the
   * policy has changed since: a forged one can only make the requirement narrower.
   */
  readonly waiting?: boolean;
}

export const skipReasons = [
  'node-name',
  'mirror-pod',
  'daemonset-pod',
  'excluded-namespace',
  'disabled-by-pod',
  'disabled-by-namespace',
  'control-plane',
  'no-image',
] as const;
export type SkipReason = (typeof skipReasons)[number];

export const outcomes = [
  'skipped',
  'placed',
  'unconstrained',
  'own-constraint',
  'gated',
  'fallback',
  'allowed-unknown',
  'denied',
  'pending',
] as const;
/**
 * `placed`: required architectures were found. `unconstrained`: the images constrain nothing. `own-constraint`: the pod
 * constrains the architecture itself; it keeps that. `gated`, `fallback`, `allowed-unknown`: an image is unknown.
 * `denied`, `pending`: no common architecture (or an unknown image under `deny`).
 */
export type Outcome = (typeof outcomes)[number];

/** One image of the pod and what follows from it. */
export interface ImageVerdict {
  readonly image: string;
  /** Names of the containers and volumes that use it. */
  readonly usedBy: readonly string[];
  /** Architectures it can run on for the pod's OS, sorted; `undefined`: it constrains nothing, or is unknown. */
  readonly architectures: readonly string[] | undefined;
  /** Present where the image is unknown: the code of the error, or `unknown`. */
  readonly unknown?: string;
  readonly facts: ImageFacts | undefined;
}

/** One rule that took part, for `explain`, warnings and the annotation. */
export interface Reason {
  /** Stable name in kebab-case, such as `required-architectures`; listed in docs. */
  readonly rule: string;
  readonly message: string;
}

/** What was added to a pod, exactly; the annotation `arch.example/decision` keeps it for the next call. */
export interface Added {
  /** Expressions ANDed into each required term without architecture constraint, one list for each copy of the term. */
  readonly terms: readonly (readonly NodeSelectorRequirement[])[];
  /** Expressions ANDed into the required terms that constrain the architecture themselves. */
  readonly match: readonly NodeSelectorRequirement[];
  /** Hostnames left out; the expression that does it is the last one in each list of `terms` and in `match`. */
  readonly excludedNodes: readonly string[];
  /**
   * Keys of the pod's own terms that look as if we had extended them: they hold by themselves what we add to others.
   * Without these, a second call would take a person's constraint for ours.
   */
  readonly lookalikes: readonly string[];
  /** True where the pod had no required term, so that all of them are ours. */
  readonly made: boolean;
  readonly preferred: readonly PreferredSchedulingTerm[];
  readonly tolerations: readonly Toleration[];
  /** Value of the nodeSelector's `kubernetes.io/arch`. */
  readonly pinned: string | undefined;
}

/** What an earlier call recorded in the annotation, as far as it is believed. */
export interface Recorded {
  /** The architectures required then; `undefined`: none were. */
  readonly architectures: readonly string[] | undefined;
  /** Stands for the images decided upon. */
  readonly imagesKey: string;
  readonly added: Added;
}

export interface PlacementDecision {
  readonly outcome: Outcome;
  /** As in the input: a workload's patch is empty, whatever the rest says. */
  readonly template?: 'DaemonSet' | 'workload';
  /** What an earlier call added to this pod; the patch takes it out where it is not wanted any more. */
  readonly replaces?: Recorded;
  readonly skip?: SkipReason;
  readonly os: string;
  readonly images: readonly ImageVerdict[];
  /**
   * Architectures that the pod will be required to have, sorted. `undefined`: no requirement is added. Empty only with
   * the outcomes `denied` and `pending`.
   */
  readonly required: readonly string[] | undefined;
  /** Preferred architectures that can be met, heaviest first. */
  readonly preferred: readonly { readonly architecture: string; readonly weight: number }[];
  readonly preferenceMode: PreferenceMode;
  /** Node labels required for each architecture, and those copied from the pod's labels. */
  readonly nodeLabelsByArchitecture: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly nodeLabels: Readonly<Record<string, string>>;
  /** Values of `kubernetes.io/hostname` of the nodes that the pod is kept away from, sorted. */
  readonly excludedNodes: readonly string[];
  readonly tolerations: readonly Toleration[];
  readonly gate: boolean;
  /** For the admission's answer where the pod is refused: names each image and its architectures. */
  readonly message?: string;
  /** For the person who applied it; each at most 256 bytes. */
  readonly warnings: readonly string[];
  readonly reasons: readonly Reason[];
}

/** The JSON patch operations that an admission may hold: nothing that can fail on the object it was made from. */
export type Operation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };
