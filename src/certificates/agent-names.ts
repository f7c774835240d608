/** Names in the certificates of agents, and the requests by which agents get them. */

/** The name in every agent's certificate (DNS SAN, and common name). */
export const agentServerName = 'archwright-agent';

/** The name in the certificate of the agent of one node (DNS SAN). */
export function agentNameOn(node: string): string {
  return `${node}.${agentServerName}`;
}

/** Signer of the CertificateSigningRequests. */
export const agentSigner = 'arch.example/agent';
export const agentUsages = ['digital signature', 'server auth'] as const;

/**
 * The number of names that an agent may give its requests. The chart's policy allows no other names, and the API
 * server removes a request an hour after its answer. So a node never has more requests: a compromised one cannot
 * flood those who list or sign them.
 */
export const maxAgentRequests = 32;

export const agentRequestPrefix = `${agentServerName}-`;

export function agentRequestName(node: string, slot: number): string {
  return `${agentRequestPrefix}${slot}.${node}`;
}
