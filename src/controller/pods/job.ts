/**
 * A Job counts a deleted pod as failed, and fails at its limit (measured with 1.36: `backoffLimit: 0`).
 * Kubernetes documentation, "Jobs": backoff failure policy, backoff limit per index, pod failure policy.
 */
import type { KubeObject, Pod } from '../../kube/api/objects.ts';

export interface Job extends KubeObject {
  readonly spec?: {
    readonly backoffLimit?: number;
    readonly backoffLimitPerIndex?: number;
    readonly podFailurePolicy?: { readonly rules?: readonly FailureRule[] | null };
  };
  readonly status?: {
    readonly failed?: number;
    readonly uncountedTerminatedPods?: { readonly failed?: readonly string[] | null };
  };
}

interface FailureRule {
  readonly action: string;
  readonly onPodConditions?: readonly { readonly type: string; readonly status?: string }[] | null;
}

/** The API server's default. */
const usualLimit = 6;

/** On the pods of an indexed Job with a limit for each index: failures of the index before this pod. */
const indexFailures = 'batch.kubernetes.io/job-index-failure-count';

/** How many more pods a Job may lose; infinity: evictions do not count. @param pod to be evicted */
export function lossesLeft({ spec = {}, status = {} }: Job, { metadata }: Pod): number {
  const { backoffLimit = usualLimit, backoffLimitPerIndex, podFailurePolicy } = spec;
  const rule = podFailurePolicy?.rules?.find(isAboutEvictions)?.action;
  if (rule === 'Ignore') return Number.POSITIVE_INFINITY;
  if (rule === 'FailJob' || rule === 'FailIndex') return 0;
  const failed = (status.failed ?? 0) + (status.uncountedTerminatedPods?.failed?.length ?? 0);
  const ofIndex =
    backoffLimitPerIndex === undefined
      ? Number.POSITIVE_INFINITY
      : backoffLimitPerIndex - Number(metadata?.annotations?.[indexFailures] ?? 0);
  return Math.max(0, Math.min(backoffLimit - failed, ofIndex));
}

/** The Eviction API gives the pod this condition. */
function isAboutEvictions({ onPodConditions }: FailureRule): boolean {
  return (
    onPodConditions?.some(({ type, status = 'True' }) => type === 'DisruptionTarget' && status === 'True') ??
    false
  );
}
