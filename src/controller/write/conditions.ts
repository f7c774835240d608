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
import { isDeepStrictEqual } from 'node:util';
import { timeText } from '../../kube/events/event.ts';

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
  readonly conditions?: readonly Condition[];
}

/** As much of a message as a person reads. The API allows 32 KiB. */
const maxMessage = 2048;

/** @param present the conditions now; those of other writers are ignored. @param now as for `statusFor` */
export function conditionsFor(
  findings: readonly Finding[],
  observedGeneration: number | undefined,
  present: readonly Condition[] | undefined,
  now: number,
): readonly Condition[] {
  const generation = observedGeneration !== undefined && { observedGeneration };
  const time = timeText(now);
  return findings.map((finding) => {
    const before = present?.find((each) => each.type === finding.type);
    const lastTransitionTime = (before?.status === finding.status && before.lastTransitionTime) || time;
    const message = finding.message.slice(0, maxMessage);
    return { ...finding, message, ...generation, lastTransitionTime };
  });
}

/**
 * The status that an object should have.
 * @param present its current status; conditions of other writers are ignored
 * @param now milliseconds since 1970, by the API server's clock
 * @returns `undefined`: it has that status already
 */
export function statusFor(
  findings: readonly Finding[],
  observedGeneration: number | undefined,
  present: ResourceStatus | undefined,
  now: number,
): ResourceStatus | undefined {
  const generation = observedGeneration !== undefined && { observedGeneration };
  const before = findings.map(({ type }) => present?.conditions?.find((each) => each.type === type));
  const conditions = conditionsFor(findings, observedGeneration, present?.conditions, now);
  const wanted = { ...generation, conditions };
  const ours = present && { ...present, conditions: before.flatMap((each) => each ?? []) };
  return isDeepStrictEqual(wanted, ours) ? undefined : wanted;
}
