import type { MetricSpec } from '../../telemetry/metrics.ts';

const results = ['issued', 'refused'] as const;
export type AgentCertificateResult = (typeof results)[number];

export const agentCertificatesTotal: MetricSpec = {
  name: 'archwright_agent_certificate_requests_total',
  type: 'counter',
  help: 'Requests of agents for certificates, by result. A refused request is a defect or an attack: its node is in the log.',
  labels: { result: results },
};
