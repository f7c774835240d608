/** What an agent says of itself at `/v1/info`, as far as it is needed; an agent of a later version may say more. */

export interface AgentInfo {
  /** Equal for agents whose nodes have the same credential sources. */
  readonly fingerprint: string;
  /** Name of its node; discovery may know better (`discovery-endpointslices.ts`). */
  readonly node?: string;
  /** `kubernetes.io/arch` of its node. */
  readonly architecture?: string;
}

/** A fingerprint is a hash; this is room for a longer one of a later version. */
const maxFingerprintLength = 200;
/** Kubernetes validates node names as DNS subdomains, RFC 1123. */
const nodeName = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/u;
/** Label values have 63 characters at most, and an architecture is one. */
const maxArchitectureLength = 63;

/**
 * Reads the answer.
 * @returns `undefined` where it says no usable fingerprint; a node name that no node can have is left out
 */
export function readAgentInfo(answer: unknown): AgentInfo | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined;
  const { credentialFingerprint, nodeName: node, architecture } = answer as Readonly<Record<string, unknown>>;
  const fingerprint = text(credentialFingerprint, maxFingerprintLength);
  if (fingerprint === undefined) return undefined;
  const says = text(architecture, maxArchitectureLength);
  return {
    fingerprint,
    ...(typeof node === 'string' && nodeName.test(node) && { node }),
    ...(says !== undefined && { architecture: says }),
  };
}

function text(value: unknown, maxLength: number): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= maxLength ? value : undefined;
}
