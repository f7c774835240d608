/** The status of a rollout: how far it is, what runs where, and what cannot be moved. */
import * as v from 'valibot';
import { type KubeObject, timeOf } from '../../../kube/api/objects.ts';
import { timeText } from '../../../kube/events/events.ts';
import { printable } from '../../../names/printable.ts';
import { newPodsValues } from '../../../policy/effective/policy.ts';
import { formatStep, type Rollout } from '../../../policy/resources/rollout.ts';
import { conditionsOf, type Finding } from '../../write/conditions.ts';
import { phases, retryAt, type Progress } from './progress.ts';

/** Enough for a namespace, and a status of 30 KB. */
const maxWorkloads = 100;

export interface WorkloadStatus {
  /** `Deployment/web` */
  readonly name: string;
  readonly pods: number;
  /** Pods on the architecture, and how many of them are ready. */
  readonly moved: number;
  readonly ready: number;
  /** Target of this step. */
  readonly wanted: number;
  /** Why it cannot be moved, or what holds its pods. */
  readonly blocked?: string;
}

export type RolloutStatus = ReturnType<typeof rolloutStatus>;

const time = v.pipe(v.unknown(), v.transform(timeOf), v.minValue(1));

const progress = v.object({
  phase: v.picklist(phases),
  newPods: v.optional(v.picklist(newPodsValues)),
  step: v.number(),
  attempt: v.number(),
  startedAt: time,
  reachedAt: v.optional(time),
  endedAt: v.optional(time),
  message: v.string(),
});

/** `undefined`: it has not begun. Only the controller may write it, so a wrong field counts as none of all. */
export function readProgress(object: KubeObject & { readonly status?: unknown }): Progress | undefined {
  const { success, output } = v.safeParse(progress, object.status);
  return success ? output : undefined;
}

export function rolloutStatus(
  rollout: Rollout,
  progress: Progress,
  workloads: readonly WorkloadStatus[],
  object: KubeObject,
  now: number,
) {
  const { phase, newPods, step, attempt, startedAt, reachedAt, endedAt } = progress;
  const message = printable(progress.message, 1024);
  const retry = retryAt(rollout, progress);
  return {
    ...conditionsOf(object, findingsOf(progress, message), now),
    phase,
    ...(newPods && { newPods }),
    message,
    step,
    share: newPods === 'Other' ? '0%' : formatStep(rollout.steps[step] ?? { percent: 100 }),
    attempt,
    startedAt: timeText(startedAt),
    ...(reachedAt !== undefined && { reachedAt: timeText(reachedAt) }),
    ...(endedAt !== undefined && { endedAt: timeText(endedAt) }),
    ...(retry !== undefined && { retryAt: timeText(retry) }),
    pods: workloads.reduce((sum, { pods }) => sum + pods, 0),
    moved: workloads.reduce((sum, { moved }) => sum + moved, 0),
    workloads: workloads.slice(0, maxWorkloads),
  };
}

export function invalidStatus(problems: readonly string[], object: KubeObject, now: number) {
  const message = printable(`Rollout ignored: ${problems.join('; ')}`, 1024);
  const finding: Finding = { type: 'Available', status: 'False', reason: 'Invalid', message };
  return { message, ...conditionsOf(object, [finding], now) };
}

function findingsOf({ phase, held }: Progress, message: string): readonly Finding[] {
  const isEnded = phase === 'RolledBack' || phase === 'Aborted';
  const isMoving = phase === 'Progressing' || phase === 'Paused';
  return [
    { type: 'Available', status: 'True', reason: 'InForce', message: '' },
    {
      type: 'Progressing',
      status: isMoving ? 'True' : 'False',
      reason: held === undefined ? phase : 'Held',
      message,
    },
    {
      type: 'Degraded',
      status: isEnded ? 'True' : 'False',
      reason: isEnded ? phase : 'AsWritten',
      message: isEnded ? message : '',
    },
  ];
}
