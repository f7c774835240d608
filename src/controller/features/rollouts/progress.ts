/**
 * The steps of a rollout, as one pure function from the last progress and the current pods to the next
 * progress. The status holds all of it, so a new leader goes on from there.
 *
 * A step's pause begins when its pods are there and as ready as the others. The next step follows if they still
 * are. If the architecture's pods are worse than the others, or a person aborts it, new pods avoid it at once.
 */
import { timeText } from '../../../kube/events/events.ts';
import { unknownArchitecture } from '../../../names/architecture.ts';
import type { NewPods } from '../../../policy/effective/policy.ts';
import { formatStep, type Rollout, type Step } from '../../../policy/resources/rollout.ts';
import type { RollbackVerdict } from './health.ts';

export const phases = ['Waiting', 'Progressing', 'Paused', 'RolledBack', 'Aborted', 'Complete'] as const;
export type Phase = (typeof phases)[number];

export interface Progress {
  readonly phase: Phase;
  readonly newPods?: NewPods | undefined;
  /** Index. */
  readonly step: number;
  /** Counts from 1. */
  readonly attempt: number;
  /** When this attempt began. Milliseconds since 1970, as all times. */
  readonly startedAt: number;
  /** When the share of this step was reached. */
  readonly reachedAt?: number | undefined;
  /** When it was rolled back or aborted. */
  readonly endedAt?: number | undefined;
  readonly message: string;
  /** What holds the step, as the message says too. */
  readonly held?: string | undefined;
}

export interface Observed {
  readonly now: number;
  /** Whether a node has the architecture, or can have it. */
  readonly hasNodes: boolean;
  /** Why no workload can be moved; `undefined`: some can. */
  readonly blocked: string | undefined;
  /** Why pods that the step wants cannot be moved; `undefined`: all can. */
  readonly left: string | undefined;
  /** What the step waits for; `undefined`: its pods are there, and as ready as the others. */
  readonly held: string | undefined;
  readonly verdict: RollbackVerdict | undefined;
}

export function progressOf(rollout: Rollout, before: Progress | undefined, seen: Observed): Progress {
  const { now, verdict } = seen;
  if (rollout.aborted) {
    if (before?.phase === 'Aborted') return before;
    const message = `aborted: new pods stay off ${rollout.architecture}, and moved pods are moved back`;
    return { ...(before ?? begin(now, 1)), phase: 'Aborted', newPods: 'Other', endedAt: now, message };
  }
  if (before === undefined || before.phase === 'Aborted' || isToRetry(rollout, before, now))
    return forward(rollout, begin(now, (before?.attempt ?? 0) + 1), seen);
  if (before.phase === 'RolledBack') return before;
  if (verdict && before.phase !== 'Complete') {
    const message = `rolled back: ${verdict.message}`;
    return { ...before, phase: 'RolledBack', newPods: 'Other', endedAt: now, message };
  }
  return forward(rollout, before, seen);
}

/** When a rollout that was rolled back is tried again by itself. */
export function retryAt({ retryAfterMs }: Rollout, { phase, endedAt }: Progress): number | undefined {
  return phase === 'RolledBack' && retryAfterMs !== undefined && endedAt !== undefined
    ? endedAt + retryAfterMs
    : undefined;
}

function isToRetry(rollout: Rollout, before: Progress, now: number): boolean {
  const { phase, endedAt } = before;
  if (phase !== 'RolledBack' || endedAt === undefined) return false;
  return (rollout.resumedAt ?? 0) > endedAt || now >= (retryAt(rollout, before) ?? Infinity);
}

function begin(now: number, attempt: number): Progress {
  return { phase: 'Progressing', step: 0, attempt, startedAt: now, message: '' };
}

function forward(rollout: Rollout, before: Progress, seen: Observed): Progress {
  const { steps, architecture, pauseMs, paused } = rollout;
  const { now, hasNodes, blocked, left, held } = seen;
  const last = steps.length - 1;
  const step = Math.min(before.step, last);
  const [current, next] = [steps[step] ?? { percent: 100 }, steps[step + 1]];
  const part = (wanted: Step): string =>
    `${formatStep(wanted)} of ${left === undefined ? 'the pods' : 'the pods that can move'}`;
  if (!hasNodes) {
    const mistake = unknownArchitecture(architecture);
    const message = `no node has ${architecture}, and schedulableArchitectures does not name it: pods are placed as without the rollout${mistake === undefined ? '' : `; ${mistake}`}`;
    return { ...before, step, phase: 'Waiting', newPods: undefined, message };
  }
  const onward = { ...before, step, newPods: 'Choose' as const, held: undefined };
  const complete = `${part(current)} are on ${architecture}${left === undefined ? '' : `; blocked: ${left}`}`;
  if (before.phase === 'Complete' && next === undefined)
    return { ...onward, newPods: atEnd(rollout), message: complete };
  if (blocked !== undefined) return { ...onward, phase: 'Waiting', message: blocked };
  const reachedAt = before.reachedAt ?? (held === undefined ? now : undefined);
  const reached = { ...onward, reachedAt };
  if (paused) return { ...reached, phase: 'Paused', message: `paused at ${formatStep(current)}` };
  if (reachedAt !== undefined && now - reachedAt < pauseMs) {
    const then = next === undefined ? 'complete' : `next step (${formatStep(next)})`;
    const message = `${part(current)} moved; ${then} at ${timeText(reachedAt + pauseMs)}`;
    return { ...reached, phase: 'Progressing', message };
  }
  if (held !== undefined) {
    const message = `moving ${part(current)} to ${architecture}; waiting: ${held}`;
    return { ...reached, phase: 'Progressing', message, held };
  }
  if (next === undefined)
    return { ...reached, phase: 'Complete', newPods: atEnd(rollout), message: complete };
  const message = `moving ${part(next)} to ${architecture}`;
  return { ...onward, phase: 'Progressing', step: step + 1, reachedAt: undefined, message };
}

/** All pods need no choice. */
function atEnd({ steps }: Rollout): NewPods {
  const last = steps.at(-1);
  return last && 'percent' in last && last.percent === 100 ? 'Target' : 'Choose';
}
