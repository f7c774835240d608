import { counter, type MetricSpec } from '../telemetry/metrics.ts';

export const pullSecretReads = counter(
  'archwright_pull_secret_reads_total',
  'Pull secrets and service accounts read.',
  { outcome: ['found', 'missing', 'failed'] },
);

export const clusterMetrics: readonly MetricSpec[] = [pullSecretReads];
