/**
 * The rules by name. A decision lists those that applied. docs/use/placement.md is generated from this list.
 */
import { own } from '../../names/values.ts';
import type { Outcome, Reason, RolledOut, Widened } from '../decision.ts';

export const rules = {
  'skip-node-name': 'The pod already names its node.',
  'skip-mirror-pod': 'A mirror pod of a static pod.',
  'skip-daemonset-pod': 'The template of the DaemonSet is placed instead.',
  'skip-excluded-namespace':
    'The configuration or `ClusterPodPlacementConfig/cluster` excludes the namespace.',
  'skip-disabled-by-pod': 'The pod has `arch.example/placement: disabled`.',
  'skip-disabled-by-namespace': 'The namespace has `arch.example/placement: disabled`.',
  'skip-control-plane': 'The nodeSelector names a control-plane role.',
  'skip-too-many-terms': 'It has more than 500 required node affinity terms, or 10,000 values in them.',
  'skip-no-image': 'No image may be pulled (`imagePullPolicy: Never`).',
  'own-constraint': 'The pod names one architecture or its node in every required term, and keeps it.',
  'constraint-widened':
    '`constraints: widen`: the pod may also run on the other architectures that all of its images have.',
  'constraint-not-widened':
    '`constraints: widen`, but the pod keeps the architectures that it names, for the reason given.',
  'own-term-constraint': 'A required term that names one architecture or a node is kept.',
  'empty-term': 'An empty required term, or an empty list of terms, matches no node. It is not changed.',
  'required-architectures': 'The architectures that all known images have, ANDed into every required term.',
  'schedulable-architectures': 'Architectures that no node of the cluster has are removed.',
  'allowed-architectures': 'A `PodPlacementConfig` limits the architectures of the pod.',
  'rollout-target': 'An `ArchitectureRollout` moves the pod to its architecture.',
  'rollout-other': 'An `ArchitectureRollout` keeps the pod off its architecture for now.',
  'rollout-choose':
    'An `ArchitectureRollout` moves some of the pods: the pod is gated until the controller has chosen.',
  'image-constrains-nothing':
    'An artifact, a bundle of manifests, WebAssembly, an invalid reference or an image that is never pulled.',
  'exec-format-error':
    'An architecture is removed, because pods of the namespace ended with an exec format error there.',
  'cpu-level':
    'An image needs an x86-64 level, according to `imageOverrides` or to pods of the namespace that ended below it.',
  unconstrained: 'No image constrains the architecture.',
  'no-common-architecture-deny': 'The images share no architecture: the pod is refused.',
  'no-common-architecture-pend': 'The images share no architecture: the pod stays pending.',
  'no-common-architecture-allow': 'The images share no architecture: the pod is admitted.',
  'unknown-image-gate':
    'An image is unknown: the pod is gated, within the architectures of the known images.',
  'unknown-image-fallback':
    "An image is unknown: the pod gets the fallback architecture, if known images and the pod's terms allow it.",
  'unknown-image-allow': 'An image is unknown: the architectures of the known images are required.',
  'unknown-image-deny': 'An image is unknown: the pod is refused.',
  'unknown-image-recorded': 'An image of a DaemonSet is unknown: the recorded architectures stay required.',
  'require-node-labels': 'Labels that nodes of a required architecture must have.',
  'match-node-labels': 'Labels of the pod that its node must have with the same value.',
  'match-node-labels-left-out': "Labels of the pod that the pod's own node constraints exclude.",
  'pullable-nodes': 'Nodes that cannot pull one of the images are excluded (`requirePullableNodes`).',
  'pullable-nodes-left-out':
    'Nodes that cannot pull are not excluded: no others remain, they are too many or unknown, or the pod names a node.',
  'node-classes': 'Nodes of a required architecture that cannot run an image are excluded.',
  'node-classes-left-out':
    'Nodes that cannot run an image are not excluded: they are too many, or the pod names a node.',
  'depends-on-node': 'It is unknown if some nodes can run an image.',
  'preferred-label': 'The pod prefers an architecture by the label `arch.example/preferred`.',
  'preferred-weights': 'The pod prefers architectures by the annotation `arch.example/preferred-weights`.',
  'preferred-policy': 'A custom resource or the configuration prefers architectures.',
  'preference-hard': 'Mode `hard`: the preferred architecture is required.',
  'preference-own': "The pod's own preferred node affinity on architectures takes precedence.",
  'preference-left-out': 'A preference that the images cannot meet, or that is invalid, is ignored.',
  tolerations: 'Taints of the required architectures are tolerated.',
  'replaces-recorded': 'The additions of an earlier call are replaced.',
  'workload-template': 'A template stays unchanged; its pods are placed when they are created.',
} as const satisfies Readonly<Record<string, string>>;

export type Rule = keyof typeof rules;

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
  /** If it is widened: what the pod named. Only `matchNodeLabels` chooses among its nodes. */
  readonly keptArchitectures?: readonly string[];
  readonly rollout?: RolledOut;
  readonly message?: string;
  readonly warnings: readonly string[];
  readonly reasons: readonly Reason[];
}
