/**
 * The effective policy of each pod, made once for each combination: the configuration, then
 * `ClusterPodPlacementConfig/cluster`, then the namespace's `PodPlacementConfig`s that select the pod, by
 * priority.
 *
 * A change of the configuration, of the cluster's object, or of whether pods may be gated drops all policies;
 * a change in a namespace drops its own. Otherwise an admission costs one pass over the selectors of its
 * namespace.
 */
import type { Configuration } from '../configuration/configuration.ts';
import { policyFor } from './effective.ts';
import { selects } from './label-selector.ts';
import type { OwnerReference } from '../../kube/api/objects.ts';
import type { Policy, RolloutPolicy } from './policy.ts';
import { collectResources, type ResourceCollection } from '../resources/collection.ts';
import type { ClusterPlacement, PodPlacement } from '../resources/placement.ts';
import { isInRollout, type RolloutScope } from '../resources/rollout.ts';

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
  /** Whether a controller leads, so that gates are removed. Called for each pod. */
  readonly controllerLeads: () => boolean;
  /** Whether an image that is unknown can become known. Called for each pod. Default: yes. */
  readonly agentsAnswer?: (() => boolean) | undefined;
}

/**
 * Of one namespace. With twenty selectors, the labels of pods could form a million combinations. Real
 * namespaces have one for each workload.
 */
const maxCombinations = 256;

interface Generation {
  readonly configuration: Configuration;
  readonly mayGate: boolean;
  readonly cluster: ClusterPlacement | undefined;
  readonly base: Policy;
  /** For namespaces that the cluster's selector excludes. One object: its patterns are compiled once. */
  readonly excluded: Policy;
  /** By namespace, by the names of the selected objects. */
  readonly combinations: Map<string, Map<string, Policy>>;
}

export function createPolicies(options: PoliciesOptions) {
  const { configuration, controllerLeads, agentsAnswer = () => true } = options;
  const { resources = collectResources({}) } = options;
  let generation: Generation | undefined;
  resources.onChange((namespace) => {
    if (namespace === undefined) generation = undefined;
    else generation?.combinations.delete(namespace);
  });

  function current(): Generation {
    const inForce = configuration();
    const mayGate = controllerLeads() && agentsAnswer();
    if (generation?.configuration === inForce && generation.mayGate === mayGate) return generation;
    const cluster = resources.cluster();
    const base = policyFor(inForce, { cluster, mayGate });
    generation = {
      configuration: inForce,
      mayGate,
      cluster,
      base,
      excluded: { ...base, excludedNamespaces: ['*'] },
      combinations: new Map(),
    };
    return generation;
  }

  function combining(namespace: string, pods: readonly PodPlacement[], now: Generation): Policy {
    const policies = now.combinations.get(namespace) ?? new Map<string, Policy>();
    now.combinations.set(namespace, policies);
    const key = pods.map(({ name }) => name).join();
    const known = policies.get(key);
    if (known) return known;
    const policy = policyFor(now.configuration, { cluster: now.cluster, pods, mayGate: now.mayGate });
    if (policies.size < maxCombinations) policies.set(key, policy);
    return policy;
  }

  return {
    /** On the admission path, from memory. */
    policyOf: (subject: PolicySubject): Policy => {
      const { namespace, namespaceLabels, labels } = subject;
      const now = current();
      if (isExcluded(now.cluster, namespaceLabels)) return now.excluded;
      const pods = resources.podsIn(namespace).filter(({ selector }) => selects(selector, labels));
      const policy = pods.length > 0 ? combining(namespace, pods, now) : now.base;
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

/** A namespace without known labels is new. Its pods are placed, which is the safe choice. */
function isExcluded(
  cluster: ClusterPlacement | undefined,
  namespaceLabels: PolicySubject['namespaceLabels'],
): boolean {
  const selector = cluster?.namespaceSelector;
  if (selector === undefined || selects(selector, namespaceLabels)) return false;
  return Object.keys(namespaceLabels).length > 0;
}
