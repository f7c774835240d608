import type { MetricSpec } from '../../telemetry/metrics.ts';

/** Architectures that Kubernetes runs on; any other counts as `other`. A closed list, so no node or image can grow the number of series. */
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
  help: 'Different images of running pods without known image facts.',
};

export const runningPods: MetricSpec = {
  name: 'archwright_running_pods',
  type: 'gauge',
  help: 'Running pods, by architecture of their node.',
  labels: { architecture: architectures },
};

export const runningImagesMetrics: readonly MetricSpec[] = [runningImages, runningImagesUnknown, runningPods];
