/**
 * The effective policy of each pod: the configuration, then `ClusterPodPlacementConfig/cluster`, then the namespace's
 * `PodPlacementConfig`s that select the pod, by priority. Made once for each combination, not for each pod.
 *
 * A change of the configuration, the cluster's object or the leader drops all policies; a change of an object in a namespace
 * drops those of the namespace. Otherwise an admission costs a few comparisons and one pass over the selectors of its
 * namespace: each selector that matches leads to the next node of a tree, and the last node has the policy.
 */
import type { Configuration } from '../configuration/configuration.ts';
import { policyFor } from './effective.ts';
import { selects } from './label-selector.ts';
import type { Policy } from './policy.ts';
import { collectResources, type ResourceSources } from '../resources/collection.ts';
import type { ClusterPlacement, PodPlacement } from '../resources/placement.ts';

/** What a policy depends on. */
export interface PolicySubject {
  readonly namespace: string;
  /** Empty: not known. Every namespace has the label `kubernetes.io/metadata.name`. */
  readonly namespaceLabels: Readonly<Record<string, string>>;
  /** Labels of the pod or template. */
  readonly labels: Readonly<Record<string, string>> | undefined;
}

export interface Policies {
  /** On the admission path, from memory. */
  policyOf(subject: PolicySubject): Policy;
}

export interface PoliciesOptions extends ResourceSources {
  /** The configuration in force: the same object until it changes. Called for each pod. */
  readonly configuration: () => Configuration;
  /** Whether a controller leads, so that gates are removed. Called for each pod. */
  readonly controllerLeads: () => boolean;
}

/**
 * Cached combinations of one namespace. With twenty selectors, the labels of pods could form a million combinations. Real
 * namespaces have one for each workload.
 */
const maxCombinations = 256;

/** Cached excluded namespaces. */
const maxExcluded = 10_000;

interface Node {
  /** The selected objects on the path to this node, by precedence. */
  readonly selected: readonly PodPlacement[];
  readonly next: Map<PodPlacement, Node>;
  policy: Policy | undefined;
}

interface Tree {
  readonly root: Node;
  combinations: number;
}

/** The policies of one state of configuration, cluster object and leader. */
interface Generation {
  readonly configuration: Configuration;
  readonly leads: boolean;
  readonly cluster: ClusterPlacement | undefined;
  readonly base: Policy;
  /** By namespace that the cluster's selector excludes. */
  readonly excluded: Map<string, Policy>;
  readonly trees: Map<string, Tree>;
}

export function createPolicies(options: PoliciesOptions): Policies {
  const { configuration, controllerLeads } = options;
  const resources = collectResources(options);
  let generation: Generation | undefined;
  resources.onChange((namespace) => {
    if (namespace === undefined) generation = undefined;
    else generation?.trees.delete(namespace);
  });

  function current(): Generation {
    const inForce = configuration();
    const leads = controllerLeads();
    if (generation?.configuration === inForce && generation.leads === leads) return generation;
    const cluster = resources.cluster();
    generation = {
      configuration: inForce,
      leads,
      cluster,
      base: policyFor(inForce, { cluster, controllerLeads: leads }),
      excluded: new Map(),
      trees: new Map(),
    };
    return generation;
  }

  function excluding(namespace: string, { base, excluded }: Generation): Policy {
    const known = excluded.get(namespace);
    if (known) return known;
    if (excluded.size >= maxExcluded) excluded.clear();
    const policy = { ...base, excludedNamespaces: [...base.excludedNamespaces, namespace] };
    excluded.set(namespace, policy);
    return policy;
  }

  /** The node of the selectors that match these labels. */
  function nodeOf(tree: Tree, rules: readonly PodPlacement[], labels: PolicySubject['labels']): Node {
    let node = tree.root;
    for (const rule of rules) {
      if (!selects(rule.selector, labels)) continue;
      let next = node.next.get(rule);
      if (next === undefined) {
        next = emptyNode([...node.selected, rule]);
        // Beyond the limit, the node is for this pod only.
        if (tree.combinations < maxCombinations) {
          node.next.set(rule, next);
          tree.combinations++;
        }
      }
      node = next;
    }
    return node;
  }

  return {
    policyOf: ({ namespace, namespaceLabels, labels }) => {
      const now = current();
      if (isExcluded(now.cluster, namespaceLabels)) return excluding(namespace, now);
      const rules = resources.podsIn(namespace);
      if (rules === undefined) return now.base;
      let tree = now.trees.get(namespace);
      if (tree === undefined) {
        tree = { root: emptyNode([]), combinations: 0 };
        now.trees.set(namespace, tree);
      }
      const node = nodeOf(tree, rules, labels);
      if (node.selected.length === 0) return now.base;
      node.policy ??= policyFor(now.configuration, {
        cluster: now.cluster,
        pods: node.selected,
        controllerLeads: now.leads,
      });
      return node.policy;
    },
  };
}

function emptyNode(selected: readonly PodPlacement[]): Node {
  return { selected, next: new Map(), policy: undefined };
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
