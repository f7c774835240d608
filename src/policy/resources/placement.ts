/**
 * The custom resources of the group `arch.example`: what people may say about placement by objects in the cluster.
 *
 * - `ClusterPodPlacementConfig/cluster` speaks for the whole cluster. It wins over the configuration.
 * - `PodPlacementConfig`, any number in each namespace, speaks for the pods that its selector selects. It wins over both.
 *
 * Where several `PodPlacementConfig`s select a pod, each setting is taken from the first that has it, in the order of
 * `precedence.ts`. `read.ts` makes these values from raw objects: the schemas in the definitions catch what is wrong in
 * the API server, and what gets past them (an older definition, an object written while there was none) is left out
 * whole. `architectures.ts` leaves out architectures that no node can have. `../policies.ts` puts it all together.
 */
import { clusterPath, namespacedPath } from '../../kube/api/paths.ts';
import type { Selector } from '../effective/label-selector.ts';
import type { OnNoCommonArchitecture, OnUnknownImage } from '../effective/policy.ts';

export const resourceGroup = 'arch.example';
export const resourceVersion = `${resourceGroup}/v1alpha1`;

export const clusterConfigKind = 'ClusterPodPlacementConfig';
export const podConfigKind = 'PodPlacementConfig';
/** The only name that the cluster's can have. */
export const clusterConfigName = 'cluster';

export const clusterConfigsPath = clusterPath(resourceVersion, 'clusterpodplacementconfigs');
export const podConfigsPath = namespacedPath(resourceVersion, 'podplacementconfigs');

export const logVerbosities = ['Normal', 'Debug', 'Trace', 'TraceAll'] as const;
export type LogVerbosity = (typeof logVerbosities)[number];

/** What both kinds may say about architectures. */
export interface ArchitectureWishes {
  /** Preferred architectures with weights from 1 to 100; `undefined`: nothing is said. */
  readonly weights: Readonly<Record<string, number>> | undefined;
  readonly fallbackArchitecture: string | undefined;
  /** The only ones that pods may run on, sorted, each once, not empty; absent: nothing is said. */
  readonly architectures?: readonly string[];
}

export interface ClusterPlacement extends ArchitectureWishes {
  /** Somebody wants to be rid of it: from then on nothing new is gated. */
  readonly deleting: boolean;
  readonly logVerbosity: LogVerbosity | undefined;
  /** `undefined`: every namespace. */
  readonly namespaceSelector: Selector | undefined;
  readonly execFormatErrorMonitor: boolean | undefined;
}

export interface PodPlacement extends ArchitectureWishes {
  readonly namespace: string;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** 0–255; the highest comes first. */
  readonly priority: number;
  /** Empty: every pod of the namespace. */
  readonly selector: Selector;
  readonly onUnknownImage: OnUnknownImage | undefined;
  readonly onNoCommonArchitecture: OnNoCommonArchitecture | undefined;
}

/** What came of reading an object: either what it says, or all that is wrong with it. */
export type Reading<T> =
  | { readonly placement: T; readonly problems: readonly [] }
  | { readonly placement?: undefined; readonly problems: readonly string[] };
