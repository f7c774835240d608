/** Decisions under `requirePullableNodes`, with groups of nodes that can and cannot pull. */
import type { PodSpec } from '../../../src/kube/api/objects.ts';
import type { NodeGroup, PlacementInput, Pullability } from '../../../src/placement/decision.ts';
import { inputOf, place, podOf, type Known } from '../../support/placement-input.ts';

export const notIn = (...values: readonly string[]): object => ({
  key: 'kubernetes.io/hostname',
  operator: 'NotIn',
  values,
});
export const both: Known = { app: 'amd64 arm64', side: 'amd64 arm64', arm: 'arm64' };

/** `group: node node`, with the architecture of the group where it has one. */
export function group(name: string, hostnames: string, ...architectures: readonly string[]): NodeGroup {
  return { name, hostnames: hostnames.split(' ').filter(Boolean), architectures };
}
export const able = group('able', 'a1 a2', 'amd64');
export const poor = group('poor', 'p2 p1', 'amd64', 'arm64');
export const none: readonly NodeGroup[] = [];

export interface Case {
  readonly spec?: Partial<PodSpec>;
  readonly images?: readonly string[];
  readonly known?: Known;
  readonly policy?: Partial<PlacementInput['policy']>;
  readonly more?: Partial<PlacementInput>;
}

export function decided(who: Readonly<Record<string, Pullability>>, given: Case = {}) {
  const { spec = {}, images = ['app'], known = both, policy = {}, more = {} } = given;
  const input = inputOf(
    podOf(images, spec),
    known,
    { requirePullableNodes: true, ...policy },
    { pullability: (image) => who[image], ...more },
  );
  const placed = place(input);
  const affinity = placed.pod.spec.affinity?.nodeAffinity;
  return {
    ...placed,
    input,
    terms: affinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms?.map(
      ({ matchExpressions }) => matchExpressions,
    ),
    rules: placed.decision.reasons.filter(({ rule }) => rule.startsWith('pullable')),
  };
}
