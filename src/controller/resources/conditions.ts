/**
 * Status conditions of the custom resources, by the Kubernetes API conventions:
 *
 * | type | true | false |
 * | --- | --- | --- |
 * | `Available` | it is in force | it is invalid, and ignored |
 * | `Degraded` | some of it, or all, has no effect | all of it has effect |
 * | `Conflict` | another one with the same priority takes precedence (`PodPlacementConfig`) | |
 * | `Progressing` | it is being deleted, and pods are still gated (`ClusterPodPlacementConfig`) | |
 *
 * Rules: kubernetes/community contributors/devel/sig-architecture/api-conventions.md, "Typical status properties".
 */
import { isDeepStrictEqual } from 'node:util';

/** A condition without its time. */
export interface Finding {
  readonly type: 'Available' | 'Degraded' | 'Conflict' | 'Progressing';
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

export interface Condition extends Omit<Finding, 'type' | 'status'> {
  readonly type: string;
  readonly status: string;
  readonly observedGeneration?: number;
  readonly lastTransitionTime: string;
}

export interface ResourceStatus {
  readonly observedGeneration?: number;
  readonly gatedPods?: number;
  readonly conditions?: readonly Condition[];
}

/** As much of a message as a person reads. The API allows 32 KiB. */
const maxMessage = 2048;

/**
 * The status that an object should have.
 * @param present its current status; conditions of other writers are ignored
 * @param now milliseconds since 1970, by the API server's clock
 * @returns `undefined`: it has that status already
 */
export function statusFor(
  findings: readonly Finding[],
  more: { readonly generation: number | undefined; readonly gatedPods?: number | undefined },
  present: ResourceStatus | undefined,
  now: number,
): ResourceStatus | undefined {
  const { generation, gatedPods } = more;
  const conditions = findings.map((finding): Condition => {
    const before = present?.conditions?.find(({ type }) => type === finding.type);
    return {
      ...finding,
      message: finding.message.slice(0, maxMessage),
      ...(generation !== undefined && { observedGeneration: generation }),
      lastTransitionTime: before?.status === finding.status ? before.lastTransitionTime : timeText(now),
    };
  });
  const wanted: ResourceStatus = {
    ...(generation !== undefined && { observedGeneration: generation }),
    ...(gatedPods !== undefined && { gatedPods }),
    conditions,
  };
  return isDeepStrictEqual(wanted, ours(present, findings)) ? undefined : wanted;
}

/** Our part of the current status, in our order. */
function ours(present: ResourceStatus | undefined, findings: readonly Finding[]): ResourceStatus | undefined {
  if (present === undefined) return undefined;
  const conditions = findings.flatMap(
    ({ type }) => present.conditions?.find((condition) => condition.type === type) ?? [],
  );
  return { ...present, conditions };
}

/** As Kubernetes writes times: whole seconds. */
function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
