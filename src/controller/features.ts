/** Every feature of the leader, by its name in log and metrics. */
import { agentCertificates } from './features/agent-certificates/agent-certificates.ts';
import { amd64Levels } from './features/node-labels/amd64-levels.ts';
import { agentNodes } from './features/node-labels/agent-nodes.ts';
import { certificates } from './features/certificates/certificates.ts';
import { watchDrift } from './features/drift/drift.ts';
import { watchExecFormatErrors } from './features/exec-format/exec-format.ts';
import { decideGatedPods } from './features/gates/gates.ts';
import { misplacedPods } from './features/misplaced/misplaced.ts';
import { credentialProblems } from './features/credential-problems/credential-problems.ts';
import { customResources } from './features/resources/resources.ts';
import { followRollouts } from './features/rollouts/rollouts.ts';
import { countRunningImages } from './features/running-images/running-images.ts';
import { taints } from './features/taints/taints.ts';
import { webhookConfiguration } from './features/webhook-configuration/webhook-configuration.ts';

export const features = {
  gates: decideGatedPods,
  certificates: certificates(),
  'agent-certificates': agentCertificates,
  'webhook-configuration': webhookConfiguration(),
  'exec-format': watchExecFormatErrors,
  taints,
  'agent-nodes': agentNodes,
  'amd64-levels': amd64Levels,
  'credential-problems': credentialProblems,
  'misplaced-pods': misplacedPods,
  'custom-resources': customResources,
  rollouts: followRollouts,
  'running-images': countRunningImages,
  drift: watchDrift,
} as const;
