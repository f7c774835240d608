/** Metrics of the caches. */
import type { MetricSpec } from '../../telemetry/metrics.ts';

export const watchNames = [
  'waitingPods',
  'runningPods',
  'nodes',
  'namespaces',
  'clusterConfigs',
  'podConfigs',
] as const;
export type WatchName = (typeof watchNames)[number];

export const cachedObjects: MetricSpec = {
  name: 'archwright_controller_cached_objects',
  type: 'gauge',
  help: 'Objects in the caches of the leader, by watch.',
  labels: { watch: watchNames },
};
