/** The certificates that the authority signs, and their faults. */
import { ownNames } from '../../../names/keys.ts';
import { isIP } from 'node:net';
import { agentServerName } from '../../../certificates/agent-names.ts';
import type { Configuration } from '../../../policy/configuration/configuration.ts';
import { trusted, type Authorities, type SecretTexts } from '../../../certificates/authorities.ts';
import { hasExpired, isDue, isNotYetValid, type AgreedTime } from '../../../certificates/clock-agreement.ts';
import { usageIds, type Subject } from '../../../certificates/issue.ts';
import { isIssuedBy, readCertificates, readPrivateKey, type Certificate } from '../../../certificates/pem.ts';

export const leafNames = ['webhook', 'agent', 'webhook-client', 'controller-client'] as const;
export type LeafName = (typeof leafNames)[number];

/** Names in metrics. */
export const certificateNames = ['ca', ...leafNames] as const;

export const issueReasons = [
  'missing',
  'unreadable',
  'foreign',
  'names',
  'expired',
  'not-yet-valid',
  'due',
  'authority',
] as const;
export type IssueReason = (typeof issueReasons)[number];

interface LeafSpec {
  readonly name: LeafName;
  readonly secretName: string;
  /** `undefined`: its names are unknown, so it cannot be issued. */
  readonly subject: Subject | undefined;
}

/** A leaf and the content of its Secret. */
export interface Leaf extends LeafSpec, ReturnType<typeof readLeaf> {
  readonly resourceVersion: string | undefined;
}

/**
 * Every leaf; the webhook's only if the service CA does not issue it.
 * @param webhookNames names in the webhook's certificate; none: they are unknown
 */
export function leafSpecs(
  configuration: Configuration,
  webhookNames: readonly string[],
): readonly LeafSpec[] {
  const { webhookTlsSecret, agentTlsSecret, webhookClientTlsSecret, controllerClientTlsSecret } =
    ownNames(configuration);
  const spec = (name: LeafName, secretName: string, commonName: string, names?: readonly string[]) => {
    const usage = names ? 'server' : 'client';
    return { name, secretName, subject: { commonName, names: names ?? [], usage } } as const;
  };
  const webhook = spec('webhook', webhookTlsSecret, 'archwright-webhook', webhookNames);
  return [
    ...(configuration.certificates === 'serviceCa'
      ? []
      : [webhookNames.length === 0 ? { ...webhook, subject: undefined } : webhook]),
    spec('agent', agentTlsSecret, agentServerName, [agentServerName]),
    // The common names are the roles that agents answer (daemon/api/api.ts).
    spec('webhook-client', webhookClientTlsSecret, 'archwright-webhook'),
    spec('controller-client', controllerClientTlsSecret, 'archwright-controller'),
  ];
}

/** Reads a Secret of type `kubernetes.io/tls`. @param texts `undefined`: there is no Secret */
export function readLeaf(texts: SecretTexts | undefined) {
  const certificate = readCertificates(texts?.['tls.crt'])?.[0];
  const key = readPrivateKey(texts?.['tls.key']);
  const keyFits = certificate !== undefined && key !== undefined && certificate.x509.checkPrivateKey(key);
  return { texts, certificate, keyFits, bundle: readCertificates(texts?.['ca.crt']) };
}

/** The worst fault of a leaf. @param signer would sign a new one @returns `undefined`: none */
export function faultOf(
  { texts, certificate, keyFits, subject }: Leaf,
  authorities: Authorities,
  signer: Certificate,
  time: AgreedTime,
): IssueReason | undefined {
  if (texts === undefined) return 'missing';
  if (certificate === undefined || !keyFits) return 'unreadable';
  const issuer = trusted(authorities).find((each) => isIssuedBy(certificate, each));
  if (issuer === undefined) return 'foreign';
  if (subject !== undefined && !isFor(certificate, subject)) return 'names';
  if (hasExpired(certificate, time) || hasExpired(issuer, time)) return 'expired';
  if (isNotYetValid(certificate, time) || isNotYetValid(issuer, time)) return 'not-yet-valid';
  if (isDue(certificate, time, time.certificateMs, signer)) return 'due';
  if (authorities.phase === 'signing' && issuer !== authorities.newest.certificate) return 'authority';
  return undefined;
}

/** Whether a certificate is for this subject and for nothing else. */
function isFor({ x509 }: Certificate, { commonName, names, usage }: Subject): boolean {
  // Undefined without the extension, although the type does not say so.
  const usages = (x509.keyUsage as readonly string[] | undefined) ?? [];
  if (x509.ca || usages.length !== 1 || usages[0] !== usageIds[usage]) return false;
  if (x509.subject !== `CN=${commonName}`) return false;
  const inside = x509.subjectAltName?.split(', ') ?? [];
  return inside.length === names.length && names.every((name) => isNamed(x509, name));
}

function isNamed(x509: Certificate['x509'], name: string): boolean {
  if (isIP(name) !== 0) return x509.checkIP(name) !== undefined;
  return x509.checkHost(name, { subject: 'never', wildcards: false }) !== undefined;
}
