import { counter, counts, gauge, type Metrics, type MetricSpec } from '../../../telemetry/metrics.ts';

const misplacedPods = gauge(
  'archwright_misplaced_pods',
  'Pods that are not ready, on a node with an architecture that their images lack.',
);

const outcomes = [
  'evicted',
  'reported',
  'held',
  'again',
  'no-node',
  'no-architecture',
  'last-try',
  'unplaced',
  'pinned',
  'failed',
] as const;
export type MisplacedOutcome = (typeof outcomes)[number];

const misplacedPodsHandled = counter(
  'archwright_misplaced_pods_total',
  'Actions on misplaced pods: evicted; reported (misplacedPods is event); held (refused, for example by a PodDisruptionBudget); again (a successor is misplaced too); no-node, no-architecture (eviction would not help); last-try (a Job would fail); unplaced (apply the DaemonSet again); pinned (another controller chose the node); failed.',
  { outcome: outcomes },
);

export const misplacedMetrics: readonly MetricSpec[] = [misplacedPods, misplacedPodsHandled];

export type MisplacedCounts = ReturnType<typeof misplacedCounts>;

export function misplacedCounts(metrics: Metrics) {
  return {
    pods: metrics.gauge(misplacedPods),
    handled: counts(metrics, misplacedPodsHandled, 'outcome', outcomes),
  };
}
