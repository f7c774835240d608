/** Every feature of the leader, by its name in log and metrics. */
import { agentCertificates } from './agent-certificates/agent-certificates.ts';
import { amd64Levels } from './amd64-levels/amd64-levels.ts';
import { agentNodes } from './agent-nodes/agent-nodes.ts';
import { certificates } from './certificates/certificates.ts';
import { watchDrift } from './drift/drift.ts';
import { watchExecFormatErrors } from './exec-format/exec-format.ts';
import { decideGatedPods } from './gates/gates.ts';
import { misplacedPods } from './misplaced/misplaced.ts';
import { credentialProblems } from './credential-problems/credential-problems.ts';
import { customResources } from './resources/resources.ts';
import { followRollouts } from './rollouts/rollouts.ts';
import { countRunningImages } from './running-images/running-images.ts';
import { taints } from './taints/taints.ts';
import { webhookConfiguration } from './webhook-configuration/webhook-configuration.ts';

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
