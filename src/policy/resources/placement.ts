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
import * as v from 'valibot';
import type { KubeObject } from '../../kube/api/objects.ts';
import { clusterPath, namespacedPath } from '../../kube/api/paths.ts';
import { byName } from '../../names/values.ts';
import {
  constraintsValues,
  onNoCommonArchitectureValues,
  onUnknownImageValues,
} from '../effective/policy.ts';
import {
  architecture,
  identityOf,
  integer,
  labelSelector,
  listOf,
  object,
  optional,
  readResource,
  section,
} from './schemas.ts';

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

/** The limit of a placement. */
const maxPlatforms = 16;
const maxPriority = 255;
const maxWeight = 100;

const platforms = v.pipe(
  listOf(object({ architecture, weight: integer(1, maxWeight) }), 0, maxPlatforms),
  v.check((list) => isUnique(list.map((each) => each.architecture)), 'names an architecture twice'),
);

/** The weights of the preferred architectures; `undefined` if the plugin is off. */
const nodeAffinityScoring = v.pipe(
  object({ enabled: optional(v.boolean()), platforms: v.nullish(platforms, []) }),
  v.check((plugin) => !plugin.enabled || plugin.platforms.length > 0, 'needs platforms if it is enabled'),
  v.transform((plugin): Readonly<Record<string, number>> | undefined =>
    plugin.enabled
      ? Object.fromEntries(plugin.platforms.map((each) => [each.architecture, each.weight]))
      : undefined,
  ),
);

const clusterConfig = object({
  metadata: object({ name: v.literal(clusterConfigName, `must be ${clusterConfigName}`) }),
  spec: v.pipe(
    section({
      logVerbosity: optional(v.picklist(logVerbosities)),
      /** Absent: every namespace. */
      namespaceSelector: optional(labelSelector),
      fallbackArchitecture: optional(architecture),
      preferredArchitecture: optional(architecture),
      constraints: optional(v.picklist(constraintsValues)),
      plugins: section({
        nodeAffinityScoring: optional(nodeAffinityScoring),
        execFormatErrorMonitor: section({ enabled: optional(v.boolean()) }),
      }),
    }),
    v.check(
      ({ preferredArchitecture: preferred, plugins }) => !preferred || !plugins.nodeAffinityScoring,
      'has both preferredArchitecture and plugins.nodeAffinityScoring',
    ),
  ),
});

/** Reads a `ClusterPodPlacementConfig`. Never throws. */
export function readClusterConfig(resource: KubeObject) {
  return readResource(clusterConfig, resource, ({ spec }) => {
    const { preferredArchitecture: preferred, plugins, ...rest } = spec;
    const weights = preferred === undefined ? plugins.nodeAffinityScoring : { [preferred]: maxWeight };
    return { ...rest, weights, execFormatErrorMonitor: plugins.execFormatErrorMonitor.enabled };
  });
}

const podConfig = object({
  spec: section({
    /** The highest comes first. */
    priority: v.nullish(integer(0, maxPriority), 0),
    /** Empty: every pod of the namespace. */
    labelSelector: v.nullish(labelSelector, {}),
    fallbackArchitecture: optional(architecture),
    /** The allowed ones; an empty list would allow none. */
    architectures: optional(
      v.pipe(listOf(architecture, 1, maxPlatforms), v.check(isUnique, 'names an architecture twice')),
    ),
    plugins: section({ nodeAffinityScoring: optional(nodeAffinityScoring) }),
    onUnknownImage: optional(v.picklist(onUnknownImageValues)),
    onNoCommonArchitecture: optional(v.picklist(onNoCommonArchitectureValues)),
    constraints: optional(v.picklist(constraintsValues)),
  }),
});

/** Reads a `PodPlacementConfig`. Never throws. */
export function readPodConfig(resource: KubeObject) {
  return readResource(podConfig, resource, ({ spec }) => {
    const { labelSelector: selector, architectures, plugins, ...rest } = spec;
    const weights = plugins.nodeAffinityScoring;
    return {
      ...identityOf(resource),
      ...rest,
      selector,
      weights,
      ...(architectures && { architectures: architectures.toSorted() }),
    };
  });
}

function isUnique(names: string[]): boolean {
  return new Set(names).size === names.length;
}

export type ClusterPlacement = NonNullable<ReturnType<typeof readClusterConfig>['value']>;
export type PodPlacement = NonNullable<ReturnType<typeof readPodConfig>['value']>;
export type ArchitecturePreferences = Pick<ClusterPlacement, 'weights' | 'fallbackArchitecture'> &
  Pick<PodPlacement, 'architectures'>;

/**
 * The order of `PodPlacementConfig`s: higher priority first, then the older one, then by name. If two of the
 * same priority select the same pods, the status of the second one reports it.
 */
export function byPrecedence(a: PodPlacement, b: PodPlacement): number {
  return b.priority - a.priority || a.createdAt - b.createdAt || byName(a.name, b.name);
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
