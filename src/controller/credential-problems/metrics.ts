import { gauge } from '../../telemetry/metrics.ts';

export const credentialProblemsNow = gauge(
  'archwright_credential_problems',
  'Credentials that nodes do not use now, by the same reason on the nodes of a DaemonSet; at most 20. Its events name them.',
);
