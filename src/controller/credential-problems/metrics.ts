import { gauge } from '../../telemetry/metrics.ts';

export const credentialProblemsNow = gauge(
  'archwright_credential_problems',
  'Credentials that nodes do not use now; at most 20. Events of the agents’ DaemonSet name them.',
);
