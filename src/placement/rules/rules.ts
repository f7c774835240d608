/**
 * The rules by name. A decision lists the rules that applied, `explain` prints them, and docs/use/placement.md is generated
 * from this list.
 */
import type { Reason, SkipReason } from '../decision.ts';

export const rules = [
  {
    rule: 'skip-node-name',
    description: 'The pod names its node already, so the scheduler does not see it.',
  },
  { rule: 'skip-mirror-pod', description: 'A mirror pod of a static pod, which its node runs already.' },
  {
    rule: 'skip-daemonset-pod',
    description: 'The DaemonSet controller pins its pods; archwright places the template of the DaemonSet.',
  },
  {
    rule: 'skip-excluded-namespace',
    description:
      'The configuration, or the `namespaceSelector` of `ClusterPodPlacementConfig/cluster`, excludes the namespace.',
  },
  {
    rule: 'skip-disabled-by-pod',
    description: 'The pod has `arch.example/placement: disabled` as label or annotation.',
  },
  {
    rule: 'skip-disabled-by-namespace',
    description: 'The namespace has the label `arch.example/placement: disabled`.',
  },
  { rule: 'skip-control-plane', description: 'The nodeSelector names a control-plane role.' },
  {
    rule: 'skip-no-image',
    description: 'No image may be pulled (`imagePullPolicy: Never`), so none can be inspected.',
  },
  {
    rule: 'own-constraint',
    description: 'The pod constrains its architecture or pins its node, and keeps that.',
  },
  {
    rule: 'own-term-constraint',
    description: 'A required term that constrains its architecture is kept as it is.',
  },
  {
    rule: 'empty-term',
    description: 'A required term without content, or no term at all, matches no node and stays so.',
  },
  {
    rule: 'required-architectures',
    description: 'The architectures that all known images have, ANDed into every required term.',
  },
  {
    rule: 'schedulable-architectures',
    description: 'Architectures that no node of the cluster has are removed.',
  },
  {
    rule: 'allowed-architectures',
    description: 'A `PodPlacementConfig` limits the architectures of the pod.',
  },
  {
    rule: 'image-constrains-nothing',
    description:
      'An artifact, a bundle of manifests, WebAssembly, an invalid reference or an image that is never pulled.',
  },
  {
    rule: 'exec-format-error',
    description:
      'Pods of the namespace ended with an exec format error on an architecture of the manifest, so it is removed.',
  },
  { rule: 'unconstrained', description: 'No image constrains the architecture, so nothing is required.' },
  {
    rule: 'no-common-architecture-deny',
    description: 'The images share no architecture: the pod is refused.',
  },
  {
    rule: 'no-common-architecture-pend',
    description:
      'The images share no architecture: the pod requires one that no node has, and stays pending.',
  },
  {
    rule: 'no-common-architecture-allow',
    description: 'The images share no architecture: the pod is admitted.',
  },
  {
    rule: 'unknown-image-gate',
    description:
      'An image is unknown: the scheduling gate holds the pod. The known images are an upper bound.',
  },
  {
    rule: 'unknown-image-fallback',
    description:
      'An image is unknown: the fallback architecture, if the known images have it, else their architectures.',
  },
  {
    rule: 'unknown-image-allow',
    description: 'An image is unknown: only the architectures of the known images are required.',
  },
  { rule: 'unknown-image-deny', description: 'An image is unknown: the pod is refused.' },
  {
    rule: 'unknown-image-recorded',
    description:
      'An image of a DaemonSet is unknown: the recorded architectures of the same images stay required.',
  },
  { rule: 'require-node-labels', description: 'Labels that nodes of a required architecture must have.' },
  {
    rule: 'match-node-labels',
    description: 'Labels of the pod that its node must have with the same value.',
  },
  {
    rule: 'pullable-nodes',
    description: 'Nodes that cannot pull one of the images are excluded (`requirePullableNodes`).',
  },
  {
    rule: 'pullable-nodes-left-out',
    description:
      'Nodes that cannot pull an image are not excluded: no others remain, they are too many or not known by name, or the pod names a node.',
  },
  {
    rule: 'preferred-label',
    description: 'The pod prefers an architecture by the label `arch.example/preferred`.',
  },
  {
    rule: 'preferred-weights',
    description: 'The pod prefers architectures by the annotation `arch.example/preferred-weights`.',
  },
  { rule: 'preferred-policy', description: 'A custom resource or the configuration prefers architectures.' },
  {
    rule: 'preference-hard',
    description: 'Mode `hard`: the preferred architecture is required.',
  },
  {
    rule: 'preference-own',
    description: "The pod's own preferred node affinity on architectures has precedence.",
  },
  {
    rule: 'preference-left-out',
    description: 'A preference that the images cannot meet, or that is invalid, is ignored.',
  },
  { rule: 'tolerations', description: 'Taints of the required architectures are tolerated.' },
  { rule: 'replaces-recorded', description: 'The additions of an earlier call are replaced.' },
  {
    rule: 'workload-template',
    description: 'A template stays unchanged; its pods are placed when they are created.',
  },
] as const;

export type Rule = (typeof rules)[number]['rule'];

/** Compile-time proof that each skip reason has its rule. */
export function skipRule(skip: SkipReason): Rule {
  return `skip-${skip}`;
}

/** A reason under a rule of the list. */
export function reason(rule: Rule, message: string): Reason {
  return { rule, message };
}

/** The description of a rule, for people; empty if there is no such rule. */
export function describeRule(rule: string): string {
  return rules.find((candidate) => candidate.rule === rule)?.description ?? '';
}
