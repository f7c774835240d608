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
  { rule: 'skip-mirror-pod', description: 'A mirror of a static pod; its node runs it already.' },
  {
    rule: 'skip-daemonset-pod',
    description: 'The DaemonSet controller pins its pods; the DaemonSet itself is placed.',
  },
  {
    rule: 'skip-excluded-namespace',
    description:
      'The configuration excludes the namespace, or the `namespaceSelector` of `ClusterPodPlacementConfig/cluster` leaves it out.',
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
    description: 'Architectures that no node of the cluster has are left out.',
  },
  {
    rule: 'allowed-architectures',
    description:
      'A `PodPlacementConfig` leaves only some architectures to the pod, whatever its images have.',
  },
  {
    rule: 'image-constrains-nothing',
    description:
      'An artifact, a bundle of manifests, WebAssembly, an invalid reference or an image that is never pulled.',
  },
  {
    rule: 'exec-format-error',
    description:
      'Pods of the namespace ended with an exec format error on an architecture that the manifest names, so it is avoided.',
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
    description: 'The images share no architecture: the pod is let through.',
  },
  {
    rule: 'unknown-image-gate',
    description:
      'An image is not known: the pod waits behind the scheduling gate; known images bound it meanwhile.',
  },
  {
    rule: 'unknown-image-fallback',
    description:
      'An image is not known: the fallback architecture where the known images have it, else their bound.',
  },
  { rule: 'unknown-image-allow', description: 'An image is not known: only the known images bound the pod.' },
  { rule: 'unknown-image-deny', description: 'An image is not known: the pod is refused.' },
  {
    rule: 'unknown-image-recorded',
    description:
      'An image of a DaemonSet is not known now: what was required for the same images before still is.',
  },
  { rule: 'require-node-labels', description: 'Labels that nodes of a required architecture must carry.' },
  {
    rule: 'match-node-labels',
    description: 'Labels of the pod that its node must carry with the same value.',
  },
  {
    rule: 'pullable-nodes',
    description: 'Nodes known to be unable to pull one of the images are left out (`requirePullableNodes`).',
  },
  {
    rule: 'pullable-nodes-left-out',
    description:
      'Nodes cannot pull an image but stay possible: no others are left, too many, not known by name, or the pod names one.',
  },
  {
    rule: 'preferred-label',
    description: 'The pod asks for an architecture by the label `arch.example/preferred`.',
  },
  {
    rule: 'preferred-weights',
    description: 'The pod asks for architectures by the annotation `arch.example/preferred-weights`.',
  },
  { rule: 'preferred-policy', description: 'A custom resource or the configuration prefers architectures.' },
  {
    rule: 'preference-hard',
    description: 'Mode `hard`: the preferred architecture is required where it is possible.',
  },
  {
    rule: 'preference-own',
    description: "The pod's own preferred node affinity on architectures wins over ours.",
  },
  {
    rule: 'preference-left-out',
    description: 'A preference that cannot be met, or is not understood, is left out.',
  },
  { rule: 'tolerations', description: 'Taints of the required architectures are tolerated.' },
  { rule: 'replaces-recorded', description: 'What an earlier call added is replaced, not added to.' },
  {
    rule: 'workload-template',
    description: 'A template is only looked at; its pods are placed when they are created.',
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
