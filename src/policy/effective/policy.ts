/**
 * The policy: the effective settings for the placement of one pod. It comes from the configuration and, where a cluster
 * is there, from custom resources and namespace labels. `placement/` reads it and nothing else.
 */
import type { Toleration } from '../../kube/api/objects.ts';

export const onUnknownImageValues = ['gate', 'fallback', 'allow', 'deny'] as const;
export type OnUnknownImage = (typeof onUnknownImageValues)[number];

export const onNoCommonArchitectureValues = ['deny', 'pend', 'allow'] as const;
export type OnNoCommonArchitecture = (typeof onNoCommonArchitectureValues)[number];

export const preferenceModes = ['soft', 'hard'] as const;
export type PreferenceMode = (typeof preferenceModes)[number];

/** What a node of one architecture needs or must carry. */
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

/** The architectures that a pod may run on at all, with their origin for explanations. */
export interface AllowedArchitectures {
  /** Sorted, each once, not empty. */
  readonly architectures: readonly string[];
  /** `PodPlacementConfig ns/name` */
  readonly origin: string;
}

/** A toleration added for each required architecture; its value is the architecture. */
export interface TolerationTemplate {
  readonly key: string;
  readonly operator: 'Equal';
  readonly effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';
}

export interface Policy {
  /** Architectures that nodes of this cluster can have. Empty: whatever the images have. */
  readonly schedulableArchitectures: readonly string[];
  /** What custom resources leave to the pod, whatever its images have; absent: no bound. Who chooses itself keeps its choice. */
  readonly allowed?: AllowedArchitectures;
  /** The first preference; `undefined` where none is set. A pod's own label wins over it. */
  readonly preference: Preference | undefined;
  /** Mode of every preference, also of the pod's own. */
  readonly preferenceMode: PreferenceMode;
  /** Those that apply, in turn, where the images cannot meet the first. */
  readonly otherPreferences?: readonly Preference[];
  /** Pod labels that mean the same as ours for a preferred architecture, of programs that were moved over from. */
  readonly preferredLabels?: readonly string[];
  readonly fallbackArchitecture: string | undefined;
  /** Already resolved: never `gate` where nobody would open the gate. */
  readonly onUnknownImage: OnUnknownImage;
  readonly onNoCommonArchitecture: OnNoCommonArchitecture;
  readonly matchNodeLabels: readonly string[];
  readonly tolerations: readonly TolerationTemplate[];
  /** Key of the taint that we give nodes; a pod that may run anywhere tolerates it whatever its value. */
  readonly ownTaintKey?: string;
  readonly architectures: Readonly<Record<string, ArchitectureRules>>;
  readonly excludedNamespaces: readonly string[];
  /** Whether pods are kept away from nodes that are known to be unable to pull their images. */
  readonly requirePullableNodes: boolean;
}
