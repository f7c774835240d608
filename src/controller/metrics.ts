/** Metrics of the controller. A feature with metrics of its own has its part here. */
import type { MetricSpec } from '../telemetry/metrics.ts';
import { gateMetrics } from './gates/metrics.ts';
import { certificateMetrics } from './certificates/metrics.ts';
import { misplacedMetrics } from './misplaced/metrics.ts';
import { taintMetrics } from './taints/metrics.ts';
import { webhookConfigurationMetrics } from './webhook-configuration/metrics.ts';

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

/** Architectures that Kubernetes runs on; any other is counted as `other`. */
export const architectures = [
  '386',
  'amd64',
  'arm',
  'arm64',
  'loong64',
  'ppc64le',
  'riscv64',
  's390x',
  'other',
] as const;

export const execFormatErrors: MetricSpec = {
  name: 'archwright_exec_format_errors_total',
  type: 'counter',
  help: 'Containers that ended with an exec format error, by architecture of their node.',
  labels: { architecture: architectures },
};

export const brokenImages: MetricSpec = {
  name: 'archwright_broken_images',
  type: 'gauge',
  help: 'Images that are avoided on an architecture since an exec format error was seen there; one for each architecture.',
};

export const systems = ['linux', 'windows', 'other'] as const;
export const variants = ['none', 'v5', 'v6', 'v7', 'v8', 'v2', 'v3', 'v4', 'other'] as const;

export const runningImages: MetricSpec = {
  name: 'archwright_running_images',
  type: 'gauge',
  help: 'Different images of running pods that have a platform; an image with several counts for each.',
  labels: { os: systems, architecture: architectures, variant: variants },
};

export const runningImagesUnknown: MetricSpec = {
  name: 'archwright_running_images_unknown',
  type: 'gauge',
  help: 'Different images of running pods of which nothing is known.',
};

export const runningPods: MetricSpec = {
  name: 'archwright_running_pods',
  type: 'gauge',
  help: 'Running pods, by architecture of their node.',
  labels: { architecture: architectures },
};

export const controllerMetrics: readonly MetricSpec[] = [
  ...gateMetrics,
  ...certificateMetrics,
  ...webhookConfigurationMetrics,
  ...taintMetrics,
  ...misplacedMetrics,
  execFormatErrors,
  brokenImages,
  runningImages,
  runningImagesUnknown,
  runningPods,
  cachedObjects,
];
