import { counter, gauge, type MetricSpec } from '../telemetry/metrics.ts';
import { clusterConfigKind, podConfigKind } from './resources/placement.ts';
import { rolloutKind } from './resources/rollout.ts';

export const reloads = counter(
  'archwright_config_reloads_total',
  'Changes of the configuration file. If one fails, the last good one stays in force.',
  { outcome: ['loaded', 'failed'] },
);

export const lastReloadSuccessful = gauge(
  'archwright_config_last_reload_successful',
  'Set to 0 if an older configuration file is in force.',
);

export const lastReloadSuccess = gauge(
  'archwright_config_last_reload_success_timestamp_seconds',
  'When the configuration in force was read.',
);

export const configurationInfo: MetricSpec = gauge(
  'archwright_configuration_info',
  'Always 1. `hash`: the first 12 digits of the SHA-256 of the configuration file in force.',
  { hash: [] },
);

export const customResources = gauge(
  'archwright_custom_resources',
  'Custom resources. Invalid ones are ignored.',
  { kind: [clusterConfigKind, podConfigKind, rolloutKind], state: ['used', 'invalid'] },
);

export const policyMetrics: readonly MetricSpec[] = [
  reloads,
  lastReloadSuccessful,
  lastReloadSuccess,
  configurationInfo,
  customResources,
];
