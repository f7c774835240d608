import { countedArchitectures } from '../../../names/architecture.ts';
import { gauge, type MetricSpec } from '../../../telemetry/metrics.ts';

export const systems = ['linux', 'windows', 'other'] as const;
export const variants = ['none', 'v5', 'v6', 'v7', 'v8', 'v2', 'v3', 'v4', 'other'] as const;

export const runningImages = gauge(
  'archwright_running_images',
  'Distinct images of running pods, by platform.',
  { os: systems, architecture: countedArchitectures, variant: variants },
);

export const runningImagesUnknown = gauge(
  'archwright_running_images_unknown',
  'Distinct images of running pods without facts.',
);

export const runningPods = gauge('archwright_running_pods', 'Running pods, by the node’s architecture.', {
  architecture: countedArchitectures,
});

export const runningImagesMetrics: readonly MetricSpec[] = [runningImages, runningImagesUnknown, runningPods];
