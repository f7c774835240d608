/** The policy: the effective settings for the placement of one pod. */
import type { Toleration } from '../../kube/api/objects.ts';

export const onUnknownImageValues = ['gate', 'fallback', 'allow', 'deny'] as const;
export type OnUnknownImage = (typeof onUnknownImageValues)[number];

export const onNoCommonArchitectureValues = ['deny', 'pend', 'allow'] as const;
export type OnNoCommonArchitecture = (typeof onNoCommonArchitectureValues)[number];

/** Effect of the architectures that a pod itself requires, if all of its images have more. */
export const constraintsValues = ['keep', 'widen'] as const;
export type Constraints = (typeof constraintsValues)[number];

export const preferenceModes = ['soft', 'hard'] as const;
export type PreferenceMode = (typeof preferenceModes)[number];

export interface ArchitectureRules {
  readonly taintsToTolerate: readonly Toleration[];
  readonly requireNodeLabels: Readonly<Record<string, string>>;
}

/** A preference for architectures, with its origin for explanations. */
export interface Preference {
  /** Architecture → weight, 1–100. */
  readonly weights: Readonly<Record<string, number>>;
  /** `configuration`, `PodPlacementConfig ns/name`, … */
  readonly origin: string;
}

/**
 * What a rollout does with new pods. `Choose`: the leader chooses for each. `Target`: all to its
 * architecture. `Other`: none. Absent: it affects no pod.
 */
export const newPodsValues = ['Choose', 'Target', 'Other'] as const;
export type NewPods = (typeof newPodsValues)[number];

export interface RolloutPolicy {
  readonly name: string;
  /** The pods are moved to it. */
  readonly architecture: string;
  readonly newPods: NewPods;
}

/** A toleration added for each required architecture; its value is the architecture. */
export interface TolerationTemplate {
  readonly key: string;
  readonly operator: 'Equal';
  readonly effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';
}

export interface Policy {
  /** Architectures that nodes of this cluster can have. Empty: no limit. */
  readonly schedulableArchitectures: readonly string[];
  /** Limit by a custom resource. Sorted, unique, not empty. A constraint of the pod has precedence. */
  readonly allowed?: { readonly architectures: readonly string[]; readonly origin: string };
  /** The `ArchitectureRollout` that the pod is in, if it affects new pods. */
  readonly rollout?: RolloutPolicy;
  /** The first that the images can meet applies. A pod's own label has precedence. */
  readonly preferences: readonly Preference[];
  /** Mode of every preference, also of the pod's own. */
  readonly preferenceMode: PreferenceMode;
  /** Pod labels of other programs for a preferred architecture. */
  readonly preferredLabels?: readonly string[];
  readonly fallbackArchitecture: string | undefined;
  /** Resolved: never `gate` while no controller leads or no agent answers. */
  readonly onUnknownImage: OnUnknownImage;
  readonly onNoCommonArchitecture: OnNoCommonArchitecture;
  readonly constraints: Constraints;
  readonly matchNodeLabels: readonly string[];
  readonly tolerations: readonly TolerationTemplate[];
  /** Key of archwright's own taint. A pod that can run on any architecture tolerates all of its values. */
  readonly ownTaintKey?: string;
  readonly architectures: Readonly<Record<string, ArchitectureRules>>;
  readonly excludedNamespaces: readonly string[];
  /** Whether nodes that cannot pull the images are excluded. */
  readonly requirePullableNodes: boolean;
}
