/**
 * The effective policy of each pod: the configuration, then `ClusterPodPlacementConfig/cluster`, then the namespace's
 * `PodPlacementConfig`s that select the pod, by priority. Made once for each combination, not for each pod.
 *
 * All of it is thrown away when the configuration, the cluster's object or the leader changes; of a namespace, when one of
 * its objects does. Until then an admission costs a few comparisons and, where there are objects in its namespace, one walk
 * over their selectors: each that selects the pod leads to the next node of a tree, and the policy stands in the last.
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
  /** Empty where they are not known: every namespace has one label at least, `kubernetes.io/metadata.name`. */
  readonly namespaceLabels: Readonly<Record<string, string>>;
  /** Labels of the pod or template. */
  readonly labels: Readonly<Record<string, string>> | undefined;
}

export interface Policies {
  /** Answers from memory; on the admission path. */
  policyOf(subject: PolicySubject): Policy;
}

export interface PoliciesOptions extends ResourceSources {
  /** The configuration in force: the same object until there is another. Asked for each time. */
  readonly configuration: () => Configuration;
  /** Whether a controller leads, which is who opens gates. Asked for each time. */
  readonly controllerLeads: () => boolean;
}

/**
 * Combinations kept for one namespace. Labels are chosen by whoever creates pods: with twenty selectors they could make a
 * million combinations; in earnest there are as many as there are workloads with different labels.
 */
const maxCombinations = 256;

/** Namespaces that are left out and had pods since the last change; beyond this they are told anew. */
const maxExcluded = 10_000;

interface Node {
  /** Those that led here, in the order of precedence. */
  readonly selected: readonly PodPlacement[];
  readonly next: Map<PodPlacement, Node>;
  policy: Policy | undefined;
}

interface Tree {
  readonly root: Node;
  combinations: number;
}

/** What follows from one state of configuration, cluster object and leader. */
interface Generation {
  readonly configuration: Configuration;
  readonly leads: boolean;
  readonly cluster: ClusterPlacement | undefined;
  readonly base: Policy;
  /** By namespace that the cluster's selector leaves out. */
  readonly excluded: Map<string, Policy>;
  readonly trees: Map<string, Tree>;
}

/** Makes the policies; they follow the sources for as long as these live. */
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

  /** The node for what selects these labels, made where it is not there yet. */
  function nodeOf(tree: Tree, rules: readonly PodPlacement[], labels: PolicySubject['labels']): Node {
    let node = tree.root;
    for (const rule of rules) {
      if (!selects(rule.selector, labels)) continue;
      let next = node.next.get(rule);
      if (next === undefined) {
        next = emptyNode([...node.selected, rule]);
        // What is beyond the limit is made for this one pod.
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
      if (isLeftOut(now.cluster, namespaceLabels)) return excluding(namespace, now);
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

/** A namespace of which no label is known yet is as new as its pods: placing them is the safe side. */
function isLeftOut(
  cluster: ClusterPlacement | undefined,
  namespaceLabels: PolicySubject['namespaceLabels'],
): boolean {
  const selector = cluster?.namespaceSelector;
  if (selector === undefined || selects(selector, namespaceLabels)) return false;
  return Object.keys(namespaceLabels).length > 0;
}
