/** Whether the successor of a pod would be placed on a node that can run it: the webhook's decision for a pod that is created now. */
import type { FactsByImage } from '../../cluster/facts-of-pod.ts';
import type { NodeSelectorRequirement, Pod } from '../../kube/api/objects.ts';
import { decide } from '../../placement/decide.ts';
import type { PlacementDecision } from '../../placement/decision.ts';
import { expressionGroups } from '../../placement/patch/additions.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import type { CachedNode } from '../caches/cached.ts';
import { selectorsOf } from '../scope/chosen-nodes.ts';
import { letsIn, takesPods } from '../scope/node-readiness.ts';

export type Replacement =
  /** On an architecture that can run it. */
  | {
      readonly kind: 'placed';
      /** Possible nodes: ready, and their taints let it in. */
      readonly nodes: ReadonlySet<string>;
      /** If the pod, or the policy, chooses among nodes: label selectors, and one of them has to fit as well. */
      readonly selectors: readonly string[] | undefined;
    }
  /**
   * `skipped`: placement is disabled, or the pod constrains its architecture itself. `no-architecture`: no architecture has
   * all of its images. `no-node`: no node with such an architecture takes pods now. `unsure`: it may land here again.
   */
  | { readonly kind: 'skipped' | 'no-architecture' | 'no-node' | 'unsure' };

export interface ReplacementInput {
  /** As it is now. */
  readonly pod: Pod;
  readonly namespace: string;
  readonly namespaceLabels: Readonly<Record<string, string>>;
  readonly policy: Policy;
  readonly facts: FactsByImage;
  /** Of the node where the pod is. */
  readonly architecture: string;
  readonly nodes: Iterable<CachedNode>;
}

export function replacementOf(input: ReplacementInput): Replacement {
  const { pod, namespace, namespaceLabels, policy, facts, architecture } = input;
  const { nodeName: _, ...spec } = pod.spec;
  const decision = decide({
    pod: { ...pod, spec },
    namespace,
    namespaceLabels,
    policy,
    facts: (image) => facts.get(image),
  });
  const { outcome, required } = decision;
  if (outcome === 'skipped' || outcome === 'own-constraint') return { kind: 'skipped' };
  if (outcome === 'denied' || outcome === 'pending') return { kind: 'no-architecture' };
  if (required === undefined || required.length === 0 || required.includes(architecture))
    return { kind: 'unsure' };
  const tolerations = [...(spec.tolerations ?? []), ...decision.tolerations];
  const nodes = new Set<string>();
  for (const node of input.nodes) {
    const isRight = node.architecture !== undefined && required.includes(node.architecture);
    if (isRight && node.os === decision.os && takesPods(node) && letsIn(node, tolerations))
      nodes.add(node.name);
  }
  if (nodes.size === 0) return { kind: 'no-node' };
  return { kind: 'placed', nodes, selectors: chosenBy(decision) };
}

/** What the pod itself and the policy choose among nodes; `undefined`: any node. */
function chosenBy(decision: PlacementDecision): readonly string[] | undefined {
  const { nodeSelector = {}, terms } = decision.own ?? {};
  const groups = labelGroupsOf(decision);
  const isFree = terms === undefined && groups === undefined && Object.keys(nodeSelector).length === 0;
  return isFree ? undefined : selectorsOf({ nodeSelector, terms }, groups);
}

/** `undefined`: the policy requires no labels. */
function labelGroupsOf(
  decision: PlacementDecision,
): readonly (readonly NodeSelectorRequirement[])[] | undefined {
  const { nodeLabels, nodeLabelsByArchitecture } = decision;
  const asked = [...Object.keys(nodeLabels), ...Object.keys(nodeLabelsByArchitecture)];
  return asked.length === 0 ? undefined : expressionGroups(decision, false);
}
