/** Every feature of the leader, and the metrics of the controller. */
import { factsRequests } from '../facts-api/server.ts';
import type { MetricSpec } from '../telemetry/metrics.ts';
import { agentCertificates } from './features/agent-certificates/agent-certificates.ts';
import { certificates } from './features/certificates/certificates.ts';
import { credentialProblems } from './features/credential-problems/credential-problems.ts';
import { drift } from './features/drift/drift.ts';
import { execFormat } from './features/exec-format/exec-format.ts';
import { gates } from './features/gates/gates.ts';
import { misplacedPods } from './features/misplaced/misplaced.ts';
import { agentNodes, amd64Levels } from './features/node-labels/node-labels.ts';
import { programErrors } from './features/program-errors/program-errors.ts';
import { customResources } from './features/resources/resources.ts';
import { rollouts } from './features/rollouts/rollouts.ts';
import { runningImagesFeature } from './features/running-images/running-images.ts';
import { taints } from './features/taints/taints.ts';
import { webhookConfiguration } from './features/webhook-configuration/webhook-configuration.ts';
import type { Feature } from './lead/feature.ts';
import { leadingMetrics } from './lead/runner.ts';
import { cachedObjects, largeObjects } from './state/caches.ts';

export const features: readonly Feature[] = [
  gates,
  certificates,
  agentCertificates,
  webhookConfiguration,
  taints,
  agentNodes,
  amd64Levels,
  misplacedPods,
  rollouts,
  credentialProblems,
  execFormat,
  programErrors,
  runningImagesFeature,
  drift,
  customResources,
];

export const controllerMetrics: readonly MetricSpec[] = [
  ...leadingMetrics(features.map(({ name }) => name)),
  ...features.flatMap(({ metrics = [] }) => metrics),
  factsRequests,
  cachedObjects,
  largeObjects,
];
