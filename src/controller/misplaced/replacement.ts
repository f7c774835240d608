/** Whether a successor of a pod would be placed where it can run: decided as the webhook would, were it created now. */
import type { FactsByImage } from '../../cluster/facts-of-pod.ts';
import type { Pod } from '../../kube/objects.ts';
import { decide } from '../../placement/decide.ts';
import type { Policy } from '../../policy/policy.ts';
import type { CachedNode } from '../caches.ts';
import { letsIn, takesPods } from '../node-room.ts';

export type Replacement =
  /** It would go to a node of these architectures. */
  | { readonly to: readonly string[] }
  /**
   * `left-alone`: a person said so, or the pod constrains its architecture itself. `no-architecture`: no architecture has
   * all of its images. `no-node`: no node of those that have them takes pods now. `unsure`: it may land here again.
   */
  | { readonly not: 'left-alone' | 'no-architecture' | 'no-node' | 'unsure' };

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
  if (outcome === 'skipped' || outcome === 'own-constraint') return { not: 'left-alone' };
  if (outcome === 'denied' || outcome === 'pending') return { not: 'no-architecture' };
  if (required === undefined || required.length === 0 || required.includes(architecture))
    return { not: 'unsure' };
  const tolerations = [...(spec.tolerations ?? []), ...decision.tolerations];
  for (const node of input.nodes) {
    const isRight = node.architecture !== undefined && required.includes(node.architecture);
    if (isRight && node.os === decision.os && takesPods(node) && letsIn(node, tolerations))
      return { to: required };
  }
  return { not: 'no-node' };
}
