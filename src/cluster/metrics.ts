import type { Counter, MetricSpec } from '../telemetry/metrics.ts';

export const pullSecretReads: MetricSpec = {
  name: 'archwright_pull_secret_reads_total',
  type: 'counter',
  help: 'Pull secrets and service accounts read.',
  labels: { outcome: ['found', 'missing', 'failed'] },
};

export const clusterMetrics: readonly MetricSpec[] = [pullSecretReads];

export interface FactsCounters {
  readonly waitsAnswered: Counter;
  readonly waitsExpired: Counter;
  readonly inquiryFailures: Counter;
}
