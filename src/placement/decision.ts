/**
 * Placement: from a pod, image facts and a policy to a decision, and from the decision to a JSON patch. Pure:
 * no clock, no randomness, no I/O; equal input gives equal bytes. `decide.ts` decides: `pod/` reads the pod,
 * `record/` removes the additions of an earlier call, `rules/` apply in order. `patch/` writes the decision.
 */
import type { ImageFacts } from '../images/facts/facts.ts';
import type {
  NodeSelectorRequirement,
  NodeSelectorTerm,
  Pod,
  PodTemplate,
  PreferredSchedulingTerm,
  Toleration,
} from '../kube/api/objects.ts';
import type { LabelExpression } from '../nodes/amd64-level.ts';
import type { NodeClasses, NodesOfClass } from '../nodes/node-classes.ts';
import type { NewPods, Policy, PreferenceMode } from '../policy/effective/policy.ts';

/** Nodes with the same credential sources: all of them can pull an image, or none. */
export interface NodeGroup {
  readonly fingerprint: string;
  /** Known values of the nodes' label `kubernetes.io/hostname`. */
  readonly hostnames: readonly string[];
  readonly architectures: readonly string[];
}

/** The groups that can pull an image, and those that cannot. Groups in neither list are not known. */
export interface Pullability {
  readonly able: readonly NodeGroup[];
  readonly unable: readonly NodeGroup[];
}

export interface PlacementInput {
  readonly pod: Pod | PodTemplate;
  /** Namespace of the request; the pod of an admission may not have it. */
  readonly namespace: string;
  readonly namespaceLabels: Readonly<Record<string, string>>;
  readonly policy: Policy;
  readonly facts: (image: string) => ImageFacts | undefined;
  /** Groups that can pull an image, by its reference in the pod; used under `requirePullableNodes`. */
  readonly pullability?: (image: string) => Pullability | undefined;
  /** Architecture of a node by its name, for warnings about pods that name their node. */
  readonly nodeArchitecture?: (node: string) => string | undefined;
  /** The classes of the cluster's nodes. Absent: not known, so architectures alone count. */
  readonly nodes?: NodeClasses;
  /** The template of a workload. It is never gated. */
  readonly template?: 'DaemonSet' | 'workload';
  /** The template before this update. Its record counts if the new template has none. */
  readonly before?: PodTemplate;
  /**
   * The pod waits behind archwright's gate. Nothing can be removed from it, so a record without a valid seal
   * counts too: it can only narrow the requirement.
   */
  readonly waiting?: boolean;
  /** Absent: records have no seal, and count without one. */
  readonly seal?: RecordSeal;
}

/** The seal of the records of one object: what only archwright can write. */
export interface RecordSeal {
  sign(text: string): string;
  verify(text: string, seal: string): boolean;
}

export const skipReasons = [
  'node-name',
  'mirror-pod',
  'daemonset-pod',
  'excluded-namespace',
  'disabled-by-pod',
  'disabled-by-namespace',
  'control-plane',
  'too-many-terms',
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
 * `placed`: architectures are required. `unconstrained`: the images constrain nothing. `own-constraint`: the
 * pod keeps its own architecture constraint. `gated`, `fallback`, `allowed-unknown`: an image is unknown.
 * `denied`, `pending`: no common architecture (or an unknown image under `deny`).
 */
export type Outcome = (typeof outcomes)[number];

export interface ImageVerdict {
  readonly image: string;
  /** Names of the containers and volumes that use it. */
  readonly usedBy: readonly string[];
  /** Those that it can run on for the pod's OS, sorted; `undefined`: it constrains nothing, or is unknown. */
  readonly architectures: readonly string[] | undefined;
  /** Nodes that cannot run it, and what is not certain. Absent: its architectures say it all. */
  readonly fit?: Fit;
  /** Present if the image is unknown: the code of the error, or `unknown`. */
  readonly unknown?: string;
  readonly facts: ImageFacts | undefined;
}

export interface Fit {
  /** Classes of its architectures that cannot pull or run it, with the reason. */
  readonly refusing: ReadonlyMap<NodesOfClass, string>;
  /** Architectures of its index that are left out, and why no node of these can run it. */
  readonly leftOut: ReadonlyMap<string, string>;
  /** What decides on some nodes, by architecture. */
  readonly dependsOn: ReadonlyMap<string, string>;
}

/** One rule that applied, for `explain`, warnings and the annotation. */
export interface Reason {
  readonly rule: string;
  readonly message: string;
}

/** The exact additions to a pod. The annotation `arch.example/decision` records them for the next call. */
export interface Added {
  /** Expressions ANDed into required terms without architecture constraint, a list for each copy. */
  readonly terms: readonly (readonly NodeSelectorRequirement[])[];
  /** Expressions ANDed into the required terms with an architecture constraint of their own. */
  readonly match: readonly NodeSelectorRequirement[];
  /** Excluded hostnames. Their expression is the last one in each list of `terms` and in `match`. */
  readonly excludedNodes: readonly string[];
  /** Keys of the pod's own terms that look like additions, so that a second call keeps them. */
  readonly lookalikes: readonly string[];
  /** True if the pod had no required term, so that all of them are additions. */
  readonly made: boolean;
  readonly preferred: readonly PreferredSchedulingTerm[];
  readonly tolerations: readonly Toleration[];
  /** Value of `kubernetes.io/arch` in the nodeSelector. */
  readonly pinned: string | undefined;
}

/** What `constraints: widen` removed from a pod that names its architectures. */
export interface Widened {
  /** Architecture labels, with their values. */
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** What each required term had. */
  readonly expressions: readonly NodeSelectorRequirement[];
}

/** The record of an earlier call, as far as it is plausible. */
export interface Recorded {
  readonly architectures: readonly string[] | undefined;
  readonly imagesKey: string;
  readonly added: Added;
  readonly widened?: Widened;
  /** An image of a DaemonSet was unknown: the additions are an upper bound. */
  readonly isProvisional: boolean;
}

/** A list of the pod: its own items, and those that an earlier call added and that are still there. */
export interface Split<Item> {
  readonly own: readonly Item[];
  readonly added: readonly Item[];
}

/** The pod's own scheduling fields, as they were before an earlier call. */
export interface OwnFields {
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly terms: readonly NodeSelectorTerm[] | undefined;
  readonly preferred: Split<PreferredSchedulingTerm>;
  readonly tolerations: Split<Toleration>;
  /** An earlier call removed the architectures, and another webhook has named some again. */
  readonly namedAgain?: true;
}

/** Where a rollout puts a pod: on its architecture, or on the others. */
export type ChosenSide = Exclude<NewPods, 'Choose'>;

export interface RolledOut {
  readonly name: string;
  readonly side: ChosenSide;
}

export interface PlacementDecision {
  readonly outcome: Outcome;
  readonly template?: 'DaemonSet' | 'workload' | undefined;
  /** Absent if nothing can be added: the pod is skipped, or it is the template of a workload. */
  readonly own?: OwnFields;
  /** Removed from the pod, and no longer in `own`. */
  readonly widened?: Widened | undefined;
  /** The additions of an earlier call. */
  readonly replaces?: Recorded | undefined;
  /** Seal of the new record. */
  readonly seal?: RecordSeal | undefined;
  readonly skip?: SkipReason;
  readonly os: string;
  readonly images: readonly ImageVerdict[];
  /** Sorted. `undefined`: no requirement is added. Empty only with the outcomes `denied` and `pending`. */
  readonly required: readonly string[] | undefined;
  /** Preferred architectures that the images can meet, heaviest first. */
  readonly preferred: readonly { readonly architecture: string; readonly weight: number }[];
  readonly preferenceMode: PreferenceMode;
  /** Required node labels by architecture, and those copied from the pod's labels. */
  readonly nodeLabelsByArchitecture: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly nodeLabels: Readonly<Record<string, string>>;
  /** The label of the CPU levels that the images need on amd64. */
  readonly amd64Level?: LabelExpression | undefined;
  /** Values of `kubernetes.io/hostname` of the excluded nodes, sorted. */
  readonly excludedNodes: readonly string[];
  readonly tolerations: readonly Toleration[];
  readonly gate: boolean;
  /** Present if a rollout decided between the architectures of the images. */
  readonly rollout?: RolledOut | undefined;
  /** Each image with its architectures, for the admission response if the pod is refused. */
  readonly message?: string | undefined;
  /** Warnings for the person who applies the pod; each at most 256 bytes. */
  readonly warnings: readonly string[];
  readonly reasons: readonly Reason[];
}

export const noAdditions = Object.freeze({
  required: undefined,
  preferred: [],
  preferenceMode: 'soft',
  nodeLabelsByArchitecture: {},
  nodeLabels: {},
  excludedNodes: [],
  tolerations: [],
  gate: false,
} satisfies Partial<PlacementDecision>);

export type Operation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };
