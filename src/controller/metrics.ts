/** Metrics of the controller. A feature with metrics of its own has its part here. */
import { factsRequests } from './facts-api/metrics.ts';
import { counter, gauge, type MetricSpec } from '../telemetry/metrics.ts';
import { agentCertificatesTotal } from './agent-certificates/metrics.ts';
import { agentNodeMetrics } from './agent-nodes/metrics.ts';
import { cachedObjects, largeObjects } from './caches/caches.ts';
import { credentialProblemsNow } from './credential-problems/metrics.ts';
import { driftMetrics } from './drift/metrics.ts';
import { gateMetrics } from './gates/metrics.ts';
import { certificateMetrics } from './certificates/metrics.ts';
import { misplacedMetrics } from './misplaced/metrics.ts';
import { rolloutMetrics } from './rollouts/metrics.ts';
import { architectures, runningImagesMetrics } from './running-images/metrics.ts';
import { taintMetrics } from './taints/metrics.ts';
import { webhookConfigurationMetrics } from './webhook-configuration/metrics.ts';

export const execFormatErrors = counter(
  'archwright_exec_format_errors_total',
  'Containers that ended with an exec format error, by the node’s architecture.',
  { architecture: architectures },
);

/** Every amd64 CPU has level 1. */
const missedLevels = ['v2', 'v3', 'v4'] as const;

export const cpuLevelErrors = counter(
  'archwright_cpu_level_errors_total',
  'Containers that ended because the CPU lacks the level.',
  { level: missedLevels },
);

export const imagesWithLevel = gauge(
  'archwright_images_with_cpu_level',
  'Records of images that need a CPU level.',
);

export const brokenImages = gauge('archwright_broken_images', 'Records of broken images.');

export const controllerMetrics: readonly MetricSpec[] = [
  ...gateMetrics,
  ...certificateMetrics,
  agentCertificatesTotal,
  ...webhookConfigurationMetrics,
  ...taintMetrics,
  ...agentNodeMetrics,
  ...misplacedMetrics,
  ...rolloutMetrics,
  credentialProblemsNow,
  execFormatErrors,
  brokenImages,
  cpuLevelErrors,
  imagesWithLevel,
  ...runningImagesMetrics,
  factsRequests,
  ...driftMetrics,
  cachedObjects,
  largeObjects,
];
