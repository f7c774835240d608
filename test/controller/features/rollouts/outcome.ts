/** How a rollout may end, or stand. Anything else is a stall in silence. */
import type { RolloutStatus } from '../../../../src/controller/features/rollouts/status.ts';

export const outcomes = ['done', 'rolled back', 'aborted', 'paused', 'waiting'] as const;
export type Outcome = (typeof outcomes)[number];

/** @param isPaused by a person @param saidWhy it said lately what holds it, or it went on */
export function outcomeOf(
  status: RolloutStatus | undefined,
  isPaused: boolean,
  saidWhy: boolean,
): Outcome | undefined {
  switch (status?.phase) {
    case 'Complete':
      return 'done';
    case 'RolledBack':
      return 'rolled back';
    case 'Aborted':
      return 'aborted';
    case 'Paused':
      return isPaused ? 'paused' : undefined;
    case 'Waiting':
      return status.message === '' ? undefined : 'waiting';
    case 'Progressing':
      return saidWhy ? 'waiting' : undefined;
    case undefined:
  }
  return undefined;
}

export function isHeld(status: RolloutStatus | undefined): boolean {
  const condition = status?.conditions.find(({ type }) => type === 'Progressing');
  return condition?.reason === 'Held' && (status?.workloads.some(({ blocked }) => blocked) ?? false);
}
