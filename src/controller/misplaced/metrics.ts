/** Metrics of misplaced pods. */
import type { Counter, Gauge, Metrics, MetricSpec } from '../../telemetry/metrics.ts';

export const misplacedPods: MetricSpec = {
  name: 'archwright_misplaced_pods',
  type: 'gauge',
  help: 'Pods that are not ready on a node whose architecture their images lack; without those that are left alone.',
};

export const moveOutcomes = [
  'evicted',
  'told',
  'held',
  'again',
  'no-node',
  'no-architecture',
  'last-try',
  'unplaced',
  'failed',
] as const;
export type MoveOutcome = (typeof moveOutcomes)[number];

export const misplacedPodsMoved: MetricSpec = {
  name: 'archwright_misplaced_pods_total',
  type: 'counter',
  help:
    'What was done about misplaced pods: evicted; told, where misplacedPods is event; held, where the eviction was refused, as by ' +
    'a PodDisruptionBudget; again, where the successor of an evicted pod is misplaced too; no-node and no-architecture, where ' +
    'eviction would not help; last-try, where a Job would end by it; unplaced, where a DaemonSet has to be applied again; failed.',
  labels: { outcome: moveOutcomes },
};

export const misplacedMetrics: readonly MetricSpec[] = [misplacedPods, misplacedPodsMoved];

export interface MisplacedCounts {
  readonly pods: Gauge;
  readonly moved: Readonly<Record<MoveOutcome, Counter>>;
}

export function misplacedCounts(metrics: Metrics): MisplacedCounts {
  const count = (outcome: MoveOutcome): Counter => metrics.counter(misplacedPodsMoved, { outcome });
  return {
    pods: metrics.gauge(misplacedPods),
    moved: {
      evicted: count('evicted'),
      told: count('told'),
      held: count('held'),
      again: count('again'),
      'no-node': count('no-node'),
      'no-architecture': count('no-architecture'),
      'last-try': count('last-try'),
      unplaced: count('unplaced'),
      failed: count('failed'),
    },
  };
}
