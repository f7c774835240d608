/**
 * The custom resources of the group `arch.example`:
 *
 * - `ClusterPodPlacementConfig/cluster` is for the whole cluster. It overrides the configuration.
 * - `PodPlacementConfig`, any number in each namespace, is for the pods that its selector selects. It
 *   overrides both. If several select a pod, each setting is taken from the first one that has it.
 *
 * The API server validates them by the schemas. An invalid object that was stored under an older definition
 * is ignored as a whole.
 */
import { clusterPath, namespacedPath } from '../../kube/api/paths.ts';
import { byName } from '../../names/values.ts';
import type { Selector } from '../effective/label-selector.ts';
import type { Constraints, OnNoCommonArchitecture, OnUnknownImage } from '../effective/policy.ts';

export const resourceGroup = 'arch.example';
export const resourceApiVersion = `${resourceGroup}/v1alpha1`;

export const clusterConfigKind = 'ClusterPodPlacementConfig';
export const podConfigKind = 'PodPlacementConfig';
/** The only valid name of a `ClusterPodPlacementConfig`. */
export const clusterConfigName = 'cluster';

export const clusterConfigsPath = clusterPath(resourceApiVersion, 'clusterpodplacementconfigs');
export const podConfigsPath = namespacedPath(resourceApiVersion, 'podplacementconfigs');

export const logVerbosities = ['Normal', 'Debug', 'Trace', 'TraceAll'] as const;
export type LogVerbosity = (typeof logVerbosities)[number];

export interface ArchitecturePreferences {
  /** Preferred architectures with weights from 1 to 100, if set. */
  readonly weights: Readonly<Record<string, number>> | undefined;
  readonly fallbackArchitecture: string | undefined;
  /** Allowed architectures, sorted, unique, not empty, if set. */
  readonly architectures?: readonly string[];
}

export interface ClusterPlacement extends ArchitecturePreferences {
  readonly logVerbosity: LogVerbosity | undefined;
  /** `undefined`: every namespace. */
  readonly namespaceSelector: Selector | undefined;
  readonly execFormatErrorMonitor: boolean | undefined;
  readonly constraints: Constraints | undefined;
}

export interface PodPlacement extends ArchitecturePreferences {
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
  readonly constraints: Constraints | undefined;
}

export type Reading<T> =
  | { readonly placement: T; readonly problems: readonly [] }
  | { readonly placement?: undefined; readonly problems: readonly string[] };

/**
 * The order of `PodPlacementConfig`s: higher priority first, then the older one, then by name. If two of the
 * same priority select the same pods, the status of the second one reports it.
 */
export function byPrecedence(a: PodPlacement, b: PodPlacement): number {
  return b.priority - a.priority || a.createdAt - b.createdAt || byName(a.name, b.name);
}

/**
 * The preferences without unschedulable architectures, because pods would stay pending. The allowed
 * `architectures` stay, because an empty list would allow every architecture. The status reports both.
 * @param schedulable architectures that nodes can have; empty: any
 */
export function withinSchedulable<T extends ArchitecturePreferences>(
  preferences: T,
  schedulable: readonly string[],
): T {
  const out = unschedulableArchitectures(preferences, schedulable);
  const { fallbackArchitecture: fallback, weights = {} } = preferences;
  const kept = Object.entries(weights).filter(([name]) => !out.includes(name));
  return {
    ...preferences,
    fallbackArchitecture: fallback === undefined || out.includes(fallback) ? undefined : fallback,
    weights: kept.length === 0 ? undefined : Object.fromEntries(kept),
  };
}

/** Sorted, unique. */
export function unschedulableArchitectures(
  preferences: ArchitecturePreferences,
  schedulable: readonly string[],
): readonly string[] {
  if (schedulable.length === 0) return [];
  return namedArchitectures(preferences).filter((name) => !schedulable.includes(name));
}

/** Sorted, unique. */
export function namedArchitectures({
  weights = {},
  fallbackArchitecture,
  architectures = [],
}: ArchitecturePreferences): readonly string[] {
  const named = new Set([...Object.keys(weights), ...architectures]);
  if (fallbackArchitecture !== undefined) named.add(fallbackArchitecture);
  return [...named].toSorted();
}
