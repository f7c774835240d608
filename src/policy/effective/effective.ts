/** The effective policy from configuration and custom resources. `policies.ts` caches it by combination. */
import type { OnUnknownImage, Policy, Preference, TolerationTemplate } from './policy.ts';
import {
  clusterConfigKind,
  clusterConfigName,
  podConfigKind,
  withinSchedulable,
  type ClusterPlacement,
  type PodPlacement,
} from '../resources/placement.ts';
import type { Configuration } from '../settings/all.ts';

export interface PolicyLayers {
  readonly cluster?: ClusterPlacement | undefined;
  readonly pods?: readonly PodPlacement[];
  /** Whether a controller would remove a gate, and agents answer. */
  readonly mayGate?: boolean;
}

/** The taint that GKE sets on arm64 nodes. */
const architectureTaint: TolerationTemplate = {
  key: 'kubernetes.io/arch',
  operator: 'Equal',
  effect: 'NoSchedule',
};

/** Noe's label for the architecture that a pod prefers. */
const labelsOfOthers: readonly string[] = ['arch.noe.adevinta.com/preferred'];

/** The largest valid weight, for a single preferred architecture. */
const fullWeight = 100;

/** The first layer that has a setting counts: `PodPlacementConfig`s by precedence, cluster, configuration. */
export function policyFor(configuration: Configuration, layers: PolicyLayers = {}): Policy {
  const { namespace, excludedNamespaces, schedulableArchitectures } = configuration;
  const pods = (layers.pods ?? []).map((each) => withinSchedulable(each, schedulableArchitectures));
  const cluster = layers.cluster && withinSchedulable(layers.cluster, schedulableArchitectures);
  const firstOf = <Key extends keyof PodPlacement>(key: Key) =>
    pods.find((each) => each[key] !== undefined)?.[key];
  const allowed = pods.find((each) => each.architectures !== undefined);
  const fallbackArchitecture =
    firstOf('fallbackArchitecture') ?? cluster?.fallbackArchitecture ?? configuration.fallbackArchitecture;
  const unknown = firstOf('onUnknownImage') ?? configuration.onUnknownImage;
  return {
    schedulableArchitectures,
    ...(allowed?.architectures && {
      allowed: { architectures: allowed.architectures, origin: originOf(allowed) },
    }),
    preferences: preferences(configuration, pods, cluster),
    preferenceMode: configuration.preferenceMode,
    ...(configuration['compat.labels'] && { preferredLabels: labelsOfOthers }),
    fallbackArchitecture,
    onUnknownImage: resolved(unknown, layers.mayGate === true, fallbackArchitecture),
    onNoCommonArchitecture: firstOf('onNoCommonArchitecture') ?? configuration.onNoCommonArchitecture,
    constraints: firstOf('constraints') ?? cluster?.constraints ?? configuration.constraints,
    matchNodeLabels: configuration.matchNodeLabels,
    tolerations: tolerations(configuration),
    ...(configuration.taintArchitectures.length > 0 && { ownTaintKey: configuration.taintKey }),
    architectures: configuration.architectures,
    excludedNamespaces: [
      ...new Set([...excludedNamespaces, ...(namespace === undefined ? [] : [namespace])]),
    ],
    requirePullableNodes: configuration.requirePullableNodes,
  };
}

function originOf({ namespace, name }: PodPlacement): string {
  return `${podConfigKind} ${namespace}/${name}`;
}

/** All preferences, because the images may not meet the first one. */
function preferences(
  configuration: Configuration,
  pods: readonly PodPlacement[],
  cluster: ClusterPlacement | undefined,
): readonly Preference[] {
  const { preferredArchitecture, preferredWeights } = configuration;
  const configured =
    preferredArchitecture === undefined ? preferredWeights : { [preferredArchitecture]: fullWeight };
  return [
    ...pods.map((each) => ({ weights: each.weights, origin: originOf(each) })),
    { weights: cluster?.weights, origin: `${clusterConfigKind} ${clusterConfigName}` },
    { weights: configured, origin: 'configuration' },
  ].flatMap(({ weights, origin }) =>
    weights === undefined || Object.keys(weights).length === 0 ? [] : [{ weights, origin }],
  );
}

/** `gate` only while gates are removed in time; then the fallback, then `allow`. */
function resolved(
  wanted: OnUnknownImage | undefined,
  gates: boolean,
  fallbackArchitecture: string | undefined,
): OnUnknownImage {
  if (wanted !== undefined && wanted !== 'gate') return wanted;
  if (gates) return 'gate';
  return fallbackArchitecture === undefined ? 'allow' : 'fallback';
}

function tolerations(configuration: Configuration): readonly TolerationTemplate[] {
  const { taintArchitectures, taintKey, tolerateArchitectureTaint } = configuration;
  const ours: TolerationTemplate = { key: taintKey, operator: 'Equal', effect: 'NoSchedule' };
  let templates = configuration.tolerations;
  if (taintArchitectures.length > 0) templates = including(templates, ours);
  return tolerateArchitectureTaint ? including(templates, architectureTaint) : templates;
}

function including(
  templates: readonly TolerationTemplate[],
  wanted: TolerationTemplate,
): readonly TolerationTemplate[] {
  const isCovered = templates.some(
    ({ key, effect }) => key === wanted.key && (effect === undefined || effect === wanted.effect),
  );
  return isCovered ? templates : [...templates, wanted];
}
