import { counter } from '../../telemetry/metrics.ts';

const results = ['issued', 'refused'] as const;
export type AgentCertificateResult = (typeof results)[number];

export const agentCertificatesTotal = counter(
  'archwright_agent_certificate_requests_total',
  'Certificate requests of agents. A refused one is a defect or an attack.',
  { result: results },
);
