/** Metrics of the controller. A feature with metrics of its own has its part here. */
import type { MetricSpec } from '../telemetry/metrics.ts';

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
  help: 'Objects that the leader keeps in memory, by watch.',
  labels: { watch: watchNames },
};

export const watchesOpen: MetricSpec = {
  name: 'archwright_controller_watch_open',
  type: 'gauge',
  help: 'Whether a watch of the leader is open now (1) or interrupted (0).',
  labels: { watch: watchNames },
};

export const controllerMetrics: readonly MetricSpec[] = [cachedObjects, watchesOpen];
