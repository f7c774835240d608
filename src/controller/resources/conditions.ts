/**
 * Status conditions of the custom resources, in the words of the Kubernetes API conventions:
 *
 * | type | true | false |
 * | --- | --- | --- |
 * | `Available` | what it says is in force | it is left out, because it is invalid |
 * | `Degraded` | a part of it, or all, has no effect | it is in force as it is written |
 * | `Conflict` | another one with the same priority comes before it (`PodPlacementConfig`) | |
 * | `Progressing` | it is being deleted, and pods still wait behind the gate (`ClusterPodPlacementConfig`) | |
 *
 * Rules: kubernetes/community contributors/devel/sig-architecture/api-conventions.md, "Typical status properties".
 */
import { isDeepStrictEqual } from 'node:util';

/** What is true of an object now. */
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

/** Of a condition's message, what a person reads; the definition takes 32 KiB. */
const maxMessage = 2048;

/**
 * The status that an object should have.
 * @param present what it has; conditions that others wrote are not looked at
 * @param now milliseconds since 1970, by the API server's clock
 * @returns `undefined` where it has that already
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

/** Of the present status, what we would have written, in our order. */
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
