import { counter, gauge, itemCounts, type Metrics, type MetricSpec } from '../../../telemetry/metrics.ts';
import { phases, type Phase } from './progress.ts';

const rollouts = gauge('archwright_rollouts', 'ArchitectureRollouts, by phase.', { phase: phases });

export const rollbackReasons = ['Unhealthy', 'BrokenImage'] as const;

const rollbacks = counter(
  'archwright_rollout_rollbacks_total',
  'Rollbacks: pods were less healthy than on other architectures, or an image cannot run there.',
  { reason: rollbackReasons },
);

const outcomes = ['evicted', 'held', 'failed'] as const;
export type MoveOutcome = (typeof outcomes)[number];

const moves = counter(
  'archwright_rollout_evictions_total',
  'Pods that rollouts moved; `held`: by a PodDisruptionBudget.',
  { outcome: outcomes },
);

export const rolloutMetrics: readonly MetricSpec[] = [rollouts, rollbacks, moves];

export type RolloutMeters = ReturnType<typeof bindRolloutMetrics>;

/** @param phasesNow of all rollouts */
export function bindRolloutMetrics(metrics: Metrics, phasesNow: () => readonly Phase[]) {
  const show = itemCounts(metrics, rollouts);
  metrics.beforeScrape(() => show(phasesNow(), (phase) => [{ phase }]));
  return {
    rolledBack: (reason: (typeof rollbackReasons)[number]) => metrics.counter(rollbacks, { reason }).inc(),
    moved: (outcome: MoveOutcome) => metrics.counter(moves, { outcome }).inc(),
  };
}
