import type { Metrics, MetricSpec } from '../../telemetry/metrics.ts';

const misplacedPods: MetricSpec = {
  name: 'archwright_misplaced_pods',
  type: 'gauge',
  help: 'Pods that are not ready on a node with an architecture that their images lack; without pods that archwright skips.',
};

const outcomes = [
  'evicted',
  'told',
  'held',
  'again',
  'no-node',
  'no-architecture',
  'last-try',
  'unconfirmed',
  'unplaced',
  'pinned',
  'failed',
] as const;
export type MisplacedOutcome = (typeof outcomes)[number];

const misplacedPodsHandled: MetricSpec = {
  name: 'archwright_misplaced_pods_total',
  type: 'counter',
  help:
    'What was done about misplaced pods: evicted; told, if misplacedPods is event; held, if the eviction was refused, for example by ' +
    'a PodDisruptionBudget; again, if the successor of an evicted pod is misplaced too; no-node and no-architecture, if ' +
    'eviction would not help; last-try, if a Job would fail by it; unconfirmed, if only one agent reports it; unplaced, if a DaemonSet has to be ' +
    'applied again; pinned, if another controller chose the node; failed.',
  labels: { outcome: outcomes },
};

export const misplacedMetrics: readonly MetricSpec[] = [misplacedPods, misplacedPodsHandled];

export type MisplacedCounts = ReturnType<typeof misplacedCounts>;

export function misplacedCounts(metrics: Metrics) {
  const handled = new Map(
    outcomes.map((outcome) => [outcome, metrics.counter(misplacedPodsHandled, { outcome })]),
  );
  return {
    pods: metrics.gauge(misplacedPods),
    handled: (outcome: MisplacedOutcome): void => handled.get(outcome)?.inc(),
  };
}
