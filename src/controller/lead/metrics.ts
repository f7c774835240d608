/** Metrics of leadership, and of features that fail. */
import { counter, gauge, type MetricSpec } from '../../telemetry/metrics.ts';

export const leadingLevel = gauge('archwright_controller_leading', 'Set to 1 if this replica leads.');

/** @param features names of all that run */
export function featureFailures(features: readonly string[]): MetricSpec {
  return counter(
    'archwright_controller_feature_failures_total',
    'Features that failed and were restarted; the log has the error.',
    { feature: features },
  );
}

const reconcileOutcomes = ['success', 'error'] as const;
export type ReconcileOutcome = (typeof reconcileOutcomes)[number];

export function featureReconciles(features: readonly string[]): MetricSpec {
  return counter(
    'archwright_controller_reconciles_total',
    'Reconciles. After an `error` the key is retried.',
    { feature: features, result: reconcileOutcomes },
  );
}

export const leadingMetrics = (features: readonly string[]): readonly MetricSpec[] => [
  leadingLevel,
  featureFailures(features),
  featureReconciles(features),
];
