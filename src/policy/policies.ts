/**
 * The effective policy of each pod: the configuration, then `ClusterPodPlacementConfig/cluster`, then the namespace's
 * `PodPlacementConfig`s that select the pod, by priority. Made once for each combination, not for each pod.
 */
import type { Policy } from './policy.ts';

/** What a policy depends on. */
export interface PolicySubject {
  readonly namespace: string;
  readonly namespaceLabels: Readonly<Record<string, string>>;
  /** Labels of the pod or template. */
  readonly labels: Readonly<Record<string, string>> | undefined;
}

export interface Policies {
  /** Answers from memory; on the admission path. */
  policyOf(subject: PolicySubject): Policy;
}
