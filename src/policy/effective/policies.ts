/**
 * The effective policy of each pod, made once for each combination: the configuration, then
 * `ClusterPodPlacementConfig/cluster`, then the namespace's `PodPlacementConfig`s that select the pod, by
 * priority.
 *
 * A change of the configuration, of a custom resource, or of whether pods may be gated drops all policies.
 * Otherwise an admission costs one pass over the selectors of its namespace.
 */
import type { OwnerReference } from '../../kube/api/objects.ts';
import type { OnUnknownImage, Policy, Preference, RolloutPolicy, TolerationTemplate } from './policy.ts';
import { collectResources, type ResourceCollection } from '../resources/collection.ts';
import {
  clusterConfigKind,
  clusterConfigName,
  podConfigKind,
  type ClusterPlacement,
  type PodPlacement,
} from '../resources/placement.ts';
import { isInRollout, type RolloutScope } from '../resources/rollout.ts';
import { selects } from '../resources/schemas.ts';
import type { Configuration } from '../settings/all.ts';

export interface PolicySubject {
  readonly namespace: string;
  /** Empty: not known. Every namespace has the label `kubernetes.io/metadata.name`. */
  readonly namespaceLabels: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>> | undefined;
  /** Owners of the pod. */
  readonly owners?: readonly OwnerReference[] | undefined;
}

export type Policies = ReturnType<typeof createPolicies>;

export interface PoliciesOptions {
  /** Default: none. */
  readonly resources?: ResourceCollection;
  /** The configuration in force: the same object until it changes. Called for each pod. */
  readonly configuration: () => Configuration;
  /** Whether a controller leads, so that gates are removed; `undefined`: not known. Called for each pod. */
  readonly controllerLeads: () => boolean | undefined;
  /** Whether an image that is unknown can become known. Called for each pod. Default: yes. */
  readonly agentsAnswer?: (() => boolean) | undefined;
}

/** Twenty selectors have a million combinations; real namespaces use one per workload. */
const maxPolicies = 2048;

export function createPolicies(options: PoliciesOptions) {
  const { configuration, agentsAnswer = () => true } = options;
  const { resources = collectResources({}) } = options;
  /** An explicit gate is honored if it is not known. */
  const controllerLeads = (): boolean =>
    options.controllerLeads() ?? configuration().onUnknownImage === 'gate';
  let inForce: Configuration | undefined;
  let mayGate = false;
  // One list for all policies: its globs are compiled once, even if a namespace has too many selectors.
  let excludedNamespaces: readonly string[] = [];
  /** Keys: the namespace and the names of the objects that select the pod. */
  const made = new Map<string, Policy>();
  resources.onChange(() => made.clear());

  /** One object for the same layers. */
  function policyOfLayers(key: string, pods: readonly PodPlacement[], isExcluded: boolean): Policy {
    const now = configuration();
    const gates = controllerLeads() && agentsAnswer();
    if (now !== inForce || gates !== mayGate) made.clear();
    if (now !== inForce) ({ excludedNamespaces } = policyFor(now));
    [inForce, mayGate] = [now, gates];
    const known = made.get(key);
    if (known) return known;
    const layered = policyFor(now, { cluster: resources.cluster(), pods, mayGate });
    const policy = { ...layered, excludedNamespaces: isExcluded ? ['*'] : excludedNamespaces };
    if (made.size < maxPolicies) made.set(key, policy);
    return policy;
  }

  return {
    /** Answers from memory, on the admission path. */
    policyOf: (subject: PolicySubject): Policy => {
      const { namespace, namespaceLabels, labels } = subject;
      const selector = resources.cluster()?.namespaceSelector;
      const isSelected = selector === undefined || selects(selector, namespaceLabels);
      // A namespace without known labels is new. Its pods are placed, which is the safe choice.
      if (!isSelected && Object.keys(namespaceLabels).length > 0) return policyOfLayers('excluded', [], true);
      const pods = resources.podsIn(namespace).filter(({ selector }) => selects(selector, labels));
      const key = pods.length === 0 ? '' : `${namespace}/${pods.map(({ name }) => name).join()}`;
      const policy = policyOfLayers(key, pods, false);
      if (!configuration().rollouts) return policy;
      const rollout = rolloutOf(resources.rolloutsIn(namespace), subject, controllerLeads());
      return rollout ? { ...policy, rollout } : policy;
    },
  };
}

/** Without a leader, which chooses for each pod, pods stay where they were before. */
function rolloutOf(
  rollouts: readonly RolloutScope[],
  { labels, owners }: PolicySubject,
  controllerLeads: boolean,
): RolloutPolicy | undefined {
  const owner = owners?.find(({ controller }) => controller === true);
  const found = owner && rollouts.find((each) => isInRollout(each, owner, labels));
  if (found?.newPods === undefined) return undefined;
  const { name, architecture, newPods } = found;
  return { name, architecture, newPods: newPods === 'Choose' && !controllerLeads ? 'Other' : newPods };
}

interface PolicyLayers {
  readonly cluster?: ClusterPlacement | undefined;
  readonly pods?: readonly PodPlacement[];
  /** Whether a controller would remove a gate, and agents answer. */
  readonly mayGate?: boolean;
}

/** The first layer that has a setting counts: `PodPlacementConfig`s by precedence, cluster, configuration. */
export function policyFor(configuration: Configuration, layers: PolicyLayers = {}): Policy {
  const { namespace, excludedNamespaces, schedulableArchitectures: schedulable } = configuration;
  const { pods = [], cluster } = layers;
  const firstOf = <Key extends keyof PodPlacement>(key: Key) =>
    pods.find((each) => each[key] !== undefined)?.[key];
  const allowed = pods.find((each) => each.architectures !== undefined);
  const fallbackArchitecture =
    [...pods, ...(cluster ? [cluster] : [])]
      .map((each) => each.fallbackArchitecture)
      // Pods would stay pending. The status of the object reports it.
      .find((name) => name !== undefined && (schedulable.length === 0 || schedulable.includes(name))) ??
    configuration.fallbackArchitecture;
  const unknown = firstOf('onUnknownImage') ?? configuration.onUnknownImage;
  return {
    schedulableArchitectures: schedulable,
    ...(allowed?.architectures && {
      allowed: { architectures: allowed.architectures, origin: originOf(allowed) },
    }),
    preferences: preferences(configuration, pods, cluster),
    preferenceMode: configuration.preferenceMode,
    // Noe's label.
    ...(configuration['compat.labels'] && { preferredLabels: ['arch.noe.adevinta.com/preferred'] }),
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
    preferredArchitecture === undefined ? preferredWeights : { [preferredArchitecture]: 100 };
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

/** Adds archwright's own taint, and the one that GKE sets on arm64 nodes, if no template covers it. */
function tolerations(configuration: Configuration): readonly TolerationTemplate[] {
  const { taintArchitectures, taintKey, tolerateArchitectureTaint } = configuration;
  const keys = [
    ...(taintArchitectures.length > 0 ? [taintKey] : []),
    ...(tolerateArchitectureTaint ? ['kubernetes.io/arch'] : []),
  ];
  const templates = [...configuration.tolerations];
  for (const key of keys) {
    const isCovered = templates.some(
      (each) => each.key === key && (each.effect ?? 'NoSchedule') === 'NoSchedule',
    );
    if (!isCovered) templates.push({ key, operator: 'Equal', effect: 'NoSchedule' });
  }
  return templates;
}
