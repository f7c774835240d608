import { gauge, type MetricSpec } from '../../telemetry/metrics.ts';

/** Architectures of Kubernetes; others count as `other`. A closed list bounds the number of series. */
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

export const runningImages = gauge(
  'archwright_running_images',
  'Distinct images of running pods, by platform.',
  { os: systems, architecture: architectures, variant: variants },
);

export const runningImagesUnknown = gauge(
  'archwright_running_images_unknown',
  'Distinct images of running pods without facts.',
);

export const runningPods = gauge('archwright_running_pods', 'Running pods, by the node’s architecture.', {
  architecture: architectures,
});

export const runningImagesMetrics: readonly MetricSpec[] = [runningImages, runningImagesUnknown, runningPods];
