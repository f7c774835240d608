/** Metrics of the configuration and of the custom resources. */
import type { MetricSpec } from '../telemetry/metrics.ts';
import { clusterConfigKind, podConfigKind } from './resources/placement.ts';

export const reloads: MetricSpec = {
  name: 'archwright_config_reloads_total',
  type: 'counter',
  help: 'Changes of the configuration file, by outcome. After a failed one the last good configuration stays in force.',
  labels: { outcome: ['loaded', 'failed'] },
};

export const lastReloadSuccessful: MetricSpec = {
  name: 'archwright_config_last_reload_successful',
  type: 'gauge',
  help: 'Set to 1 if the current configuration file is valid, 0 if an older one is in force.',
};

export const lastReloadSuccess: MetricSpec = {
  name: 'archwright_config_last_reload_success_timestamp_seconds',
  type: 'gauge',
  help: 'When the configuration in force was read, in seconds since 1970.',
};

export const customResources: MetricSpec = {
  name: 'archwright_custom_resources',
  type: 'gauge',
  help: 'Custom resources in the cluster, by kind and validity. Invalid ones are ignored; their status has the reason.',
  labels: { kind: [clusterConfigKind, podConfigKind], state: ['used', 'invalid'] },
};

export const policyMetrics: readonly MetricSpec[] = [
  reloads,
  lastReloadSuccessful,
  lastReloadSuccess,
  customResources,
];
