/** When an agent's certificate has to be renewed. Pure. */
import { X509Certificate } from 'node:crypto';
import { agentNameOn } from '../../src/certificates/agent-names.ts';
import { certificatesIn } from '../../src/serving/tls-files.ts';

/** Both PEM, from the mounted Secret of the agents. */
export interface Authority {
  /** Every CA that is trusted now. */
  readonly ca: string;
  /** A certificate from the CA that signs now. */
  readonly sample: string;
}

export interface Renewal {
  /** Milliseconds since 1970. At or before now: it cannot be used any more, or is due. */
  readonly at: number;
  /** Whether another CA signs now. The old one is trusted for up to an hour; each agent moves by then. */
  readonly moves: boolean;
  /** Life of the certificate, milliseconds. */
  readonly lifeMs: number;
}

/** The same part of a life as for all certificates of archwright. */
const dueAfter = 2 / 3;
/** Agents that started together must not renew together. */
const spread = 1 / 10;

/** @param random 0 to 1, fixed per process @returns `undefined` without an acceptable certificate */
export function renewalOf(
  certificatePem: string,
  authority: Authority,
  node: string,
  random: number,
): Renewal | undefined {
  const certificate = new X509Certificate(certificatePem);
  if (certificate.checkHost(agentNameOn(node), { subject: 'never', wildcards: false }) === undefined)
    return undefined;
  const authorities = certificatesIn(authority.ca);
  const issuer = issuerOf(certificate, authorities);
  if (issuer === undefined) return undefined;
  const signing = issuerOf(new X509Certificate(authority.sample), authorities);
  const [from, to] = [certificate.validFromDate.getTime(), certificate.validToDate.getTime()];
  const lifeMs = to - from;
  return {
    at: from + lifeMs * (dueAfter + random * spread),
    moves: signing !== undefined && signing.fingerprint256 !== issuer.fingerprint256,
    lifeMs,
  };
}

function issuerOf(
  certificate: X509Certificate,
  authorities: readonly X509Certificate[],
): X509Certificate | undefined {
  return authorities.find((each) => certificate.checkIssued(each) && certificate.verify(each.publicKey));
}
