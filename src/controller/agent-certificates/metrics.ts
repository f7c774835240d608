import type { MetricSpec } from '../../telemetry/metrics.ts';

const results = ['issued', 'refused'] as const;
export type AgentCertificateResult = (typeof results)[number];

export const agentCertificatesTotal: MetricSpec = {
  name: 'archwright_agent_certificate_requests_total',
  type: 'counter',
  help: 'Certificate requests of agents. A refused one is a defect or an attack.',
  labels: { result: results },
};
