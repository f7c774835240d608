/**
 * The rules by name. A decision lists the rules that applied, `explain` prints them, and docs/use/placement.md is generated
 * from this list.
 */
import { own } from '../../names/architecture.ts';
import type { Outcome, Reason, SkipReason, Widened } from '../decision.ts';

export const rules = {
  'skip-node-name': 'The pod names its node already, so the scheduler does not see it.',
  'skip-mirror-pod': 'A mirror pod of a static pod, which its node runs already.',
  'skip-daemonset-pod':
    'The DaemonSet controller pins its pods; archwright places the template of the DaemonSet.',
  'skip-excluded-namespace':
    'The configuration, or the `namespaceSelector` of `ClusterPodPlacementConfig/cluster`, excludes the namespace.',
  'skip-disabled-by-pod': 'The pod has `arch.example/placement: disabled` as label or annotation.',
  'skip-disabled-by-namespace': 'The namespace has the label `arch.example/placement: disabled`.',
  'skip-control-plane': 'The nodeSelector names a control-plane role.',
  'skip-no-image': 'No image may be pulled (`imagePullPolicy: Never`), so none can be inspected.',
  'own-constraint':
    'The pod names one architecture or pins its node, in every required term, and keeps that.',
  'constraint-widened':
    '`constraints: widen`: the pod may also run on the other architectures that all of its images have.',
  'constraint-not-widened':
    '`constraints: widen`, but the pod keeps the architectures that it names, for the reason given.',
  'own-term-constraint': 'A required term that names one architecture or a node is kept as it is.',
  'empty-term': 'A required term without content, or no term at all, matches no node and stays so.',
  'required-architectures': 'The architectures that all known images have, ANDed into every required term.',
  'schedulable-architectures': 'Architectures that no node of the cluster has are removed.',
  'allowed-architectures': 'A `PodPlacementConfig` limits the architectures of the pod.',
  'image-constrains-nothing':
    'An artifact, a bundle of manifests, WebAssembly, an invalid reference or an image that is never pulled.',
  'exec-format-error':
    'Pods of the namespace ended with an exec format error on an architecture of the manifest, so it is removed.',
  'cpu-level':
    'An image needs a level of x86-64, by `imageOverrides` or because pods of the namespace ended on a CPU below it.',
  unconstrained: 'No image constrains the architecture, so nothing is required.',
  'no-common-architecture-deny': 'The images share no architecture: the pod is refused.',
  'no-common-architecture-pend':
    'The images share no architecture: the pod requires one that no node has, and stays pending.',
  'no-common-architecture-allow': 'The images share no architecture: the pod is admitted.',
  'unknown-image-gate':
    'An image is unknown: the scheduling gate holds the pod. The known images are an upper bound.',
  'unknown-image-fallback':
    "An image is unknown: the fallback architecture, if known images and the pod's terms have it, else the known images' architectures.",
  'unknown-image-allow':
    'An image is unknown: only the architectures of the known images are required. A DaemonSet never gets a fallback.',
  'unknown-image-deny': 'An image is unknown: the pod is refused.',
  'unknown-image-recorded':
    'An image of a DaemonSet is unknown: the recorded architectures of the same images stay required.',
  'require-node-labels': 'Labels that nodes of a required architecture must have.',
  'match-node-labels':
    'Labels of the pod that its node must have with the same value. A label that names an architecture bounds the required ones.',
  'pullable-nodes': 'Nodes that cannot pull one of the images are excluded (`requirePullableNodes`).',
  'pullable-nodes-left-out':
    'Nodes that cannot pull an image are not excluded: no others remain, they are too many or not known by name, or the pod names a node.',
  'node-classes':
    'Nodes of a required architecture that cannot pull or run an image are excluded, by a label or by name.',
  'node-classes-left-out': 'Such nodes are not excluded: they are too many, or the pod names a node.',
  'depends-on-node': 'What decides if nodes of an architecture run an image, and is not known of them.',
  'preferred-label': 'The pod prefers an architecture by the label `arch.example/preferred`.',
  'preferred-weights': 'The pod prefers architectures by the annotation `arch.example/preferred-weights`.',
  'preferred-policy': 'A custom resource or the configuration prefers architectures.',
  'preference-hard': 'Mode `hard`: the preferred architecture is required.',
  'preference-own': "The pod's own preferred node affinity on architectures has precedence.",
  'preference-left-out': 'A preference that the images cannot meet, or that is invalid, is ignored.',
  tolerations: 'Taints of the required architectures are tolerated.',
  'replaces-recorded': 'The additions of an earlier call are replaced.',
  'workload-template': 'A template stays unchanged; its pods are placed when they are created.',
} as const satisfies Readonly<Record<string, string>>;

export type Rule = keyof typeof rules;

export function skipRule(skip: SkipReason): Rule {
  return `skip-${skip}`;
}

export function reason(rule: Rule, message: string): Reason {
  return { rule, message };
}

export function draft(
  outcome: Outcome,
  required: readonly string[] | undefined,
  rule: Rule,
  text: string,
  more: Partial<Draft> = {},
): Draft {
  return { outcome, required, warnings: [], reasons: [reason(rule, text)], ...more };
}

export function describeRule(rule: string): string {
  return own(rules, rule) ?? '';
}

/** The architectures of a pod and why, before preferences, tolerations, node labels and excluded nodes. */
export interface Draft {
  readonly outcome: Outcome;
  readonly required: readonly string[] | undefined;
  /** Architectures whose taints are tolerated. Default: the required ones. */
  readonly tolerated?: readonly string[];
  readonly gate?: boolean;
  readonly widened?: Widened;
  /** If it is widened: the pod's own architectures that it would keep alone. Only `matchNodeLabels` chooses among their nodes. */
  readonly keptArchitectures?: readonly string[];
  readonly message?: string;
  readonly warnings: readonly string[];
  readonly reasons: readonly Reason[];
}
