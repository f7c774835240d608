/** Metrics of the controller. A feature with several has its own file. */
import { countedArchitectures } from '../names/architecture.ts';
import { counter, gauge, type MetricSpec } from '../telemetry/metrics.ts';
import { cachedObjects, largeObjects } from './state/caches.ts';
import { factsRequests } from '../facts-api/server.ts';
import { driftMetrics } from './features/drift/metrics.ts';
import { gateMetrics } from './features/gates/metrics.ts';
import { certificateMetrics } from './features/certificates/metrics.ts';
import { misplacedMetrics } from './features/misplaced/metrics.ts';
import { rolloutMetrics } from './features/rollouts/metrics.ts';
import { runningImagesMetrics } from './features/running-images/metrics.ts';
import { taintMetrics } from './features/taints/metrics.ts';
import { webhookConfigurationMetrics } from './features/webhook-configuration/metrics.ts';

export const execFormatErrors = counter(
  'archwright_exec_format_errors_total',
  'Containers that ended with an exec format error, by the node’s architecture.',
  { architecture: countedArchitectures },
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

const agentCertificateResults = ['issued', 'refused'] as const;
export type AgentCertificateResult = (typeof agentCertificateResults)[number];

export const agentCertificatesTotal = counter(
  'archwright_agent_certificate_requests_total',
  'Certificate requests of agents. A refused one is a defect or an attack.',
  { result: agentCertificateResults },
);

export const labeledNodes = gauge('archwright_agent_nodes', 'Nodes labeled for agentNodes; 0 if it is all.');

export const uncoveredPools = gauge(
  'archwright_agent_pools_uncovered',
  'Node pools without a healthy node for an agent.',
);

export const credentialProblemsNow = gauge(
  'archwright_credential_problems',
  'Credentials that nodes do not use now; at most 20. Events of the agents’ DaemonSet name them.',
);

export const credentialProblemsInfo = gauge(
  'archwright_credential_problems_info',
  'Always 1. `ids`: hashes of these problems, by which `archwright status` finds their events.',
  { ids: [] },
);

export const controllerMetrics: readonly MetricSpec[] = [
  ...gateMetrics,
  ...certificateMetrics,
  agentCertificatesTotal,
  ...webhookConfigurationMetrics,
  ...taintMetrics,
  labeledNodes,
  uncoveredPools,
  ...misplacedMetrics,
  ...rolloutMetrics,
  credentialProblemsNow,
  credentialProblemsInfo,
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
