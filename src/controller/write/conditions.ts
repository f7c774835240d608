/**
 * Status conditions of the custom resources, by the Kubernetes API conventions:
 *
 * | type | true | false |
 * | --- | --- | --- |
 * | `Available` | it is in force | it is invalid, and ignored |
 * | `Degraded` | some of it, or all, has no effect | all of it has effect |
 * | `Conflict` | another one with the same priority takes precedence (`PodPlacementConfig`) | |
 * | `Progressing` | an `ArchitectureRollout` moves pods | |
 *
 * kubernetes/community contributors/devel/sig-architecture/api-conventions.md, "Typical status properties".
 */
import type { KubeObject } from '../../kube/api/objects.ts';
import { timeText } from '../../kube/events/events.ts';

/** A condition without its time. */
export interface Finding {
  readonly type: 'Available' | 'Degraded' | 'Conflict' | 'Progressing';
  readonly status: 'True' | 'False';
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
  readonly conditions: readonly Condition[];
}

/** The status that an object has now. */
export function statusOf(object: KubeObject): Partial<ResourceStatus> | undefined {
  return (object as { readonly status?: Partial<ResourceStatus> | null }).status ?? undefined;
}

/** A person reads so much of a message. The API allows 32 KiB. */
const maxMessage = 2048;

/**
 * Generation and conditions that the status of an object should have.
 * @param now milliseconds since 1970, by the API server's clock
 */
export function conditionsOf(object: KubeObject, findings: readonly Finding[], now: number): ResourceStatus {
  const { generation } = object.metadata ?? {};
  const observed = generation !== undefined && { observedGeneration: generation };
  const present = statusOf(object)?.conditions;
  const conditions = findings.map((finding) => {
    const before = present?.find(({ type }) => type === finding.type);
    const lastTransitionTime =
      (before?.status === finding.status && before.lastTransitionTime) || timeText(now);
    const message = finding.message.slice(0, maxMessage);
    return { ...finding, message, ...observed, lastTransitionTime };
  });
  return { ...observed, conditions };
}
