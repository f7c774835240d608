/** The certificates that the authority signs: which ones there are, and what is wrong with one. */
import { isIP } from 'node:net';
import { agentServerName } from '../../fleet/agents/connection.ts';
import type { Configuration } from '../../policy/configuration/configuration.ts';
import { trusted, type Authorities, type SecretTexts } from './authorities.ts';
import { usageIds, type Subject } from './issue.ts';
import { hasExpired, isDue, isNotYetValid, validity, type AgreedTime } from './clock-agreement.ts';
import { isIssuedBy, readCertificates, readPrivateKey, type Certificate } from './pem.ts';

export const leafNames = ['webhook', 'agent', 'webhook-client', 'controller-client'] as const;
export type LeafName = (typeof leafNames)[number];

/** Why a certificate is issued. */
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

export interface LeafSpec {
  readonly name: LeafName;
  readonly secretName: string;
  /** `undefined`: its names are unknown, so it cannot be issued. */
  readonly subject: Subject | undefined;
}

/** The content of a leaf's Secret. */
export interface Leaf {
  /** `undefined`: there is no Secret. */
  readonly texts: SecretTexts | undefined;
  readonly certificate: Certificate | undefined;
  readonly keyFits: boolean;
  /** `ca.crt`. */
  readonly bundle: readonly Certificate[] | undefined;
}

/**
 * Every leaf.
 * @param webhookNames names in the webhook's certificate; none: they are unknown
 */
export function leafSpecs(
  configuration: Pick<
    Configuration,
    'webhookTlsSecret' | 'agentTlsSecret' | 'webhookClientTlsSecret' | 'controllerClientTlsSecret'
  >,
  webhookNames: readonly string[],
): readonly LeafSpec[] {
  const webhook: Subject = { commonName: 'archwright-webhook', names: webhookNames, usage: 'server' };
  return [
    {
      name: 'webhook',
      secretName: configuration.webhookTlsSecret,
      subject: webhookNames.length === 0 ? undefined : webhook,
    },
    {
      name: 'agent',
      secretName: configuration.agentTlsSecret,
      subject: { commonName: agentServerName, names: [agentServerName], usage: 'server' },
    },
    // The common names are the roles that agents answer (daemon/api/roles.ts).
    {
      name: 'webhook-client',
      secretName: configuration.webhookClientTlsSecret,
      subject: { commonName: 'archwright-webhook', names: [], usage: 'client' },
    },
    {
      name: 'controller-client',
      secretName: configuration.controllerClientTlsSecret,
      subject: { commonName: 'archwright-controller', names: [], usage: 'client' },
    },
  ];
}

/** Reads the texts of a Secret of type `kubernetes.io/tls`. */
export function readLeaf(texts: SecretTexts | undefined): Leaf {
  const certificate = readCertificates(texts?.['tls.crt'])?.[0];
  const key = readPrivateKey(texts?.['tls.key']);
  return {
    texts,
    certificate,
    keyFits: certificate !== undefined && key !== undefined && certificate.x509.checkPrivateKey(key),
    bundle: readCertificates(texts?.['ca.crt']),
  };
}

/**
 * The worst fault of a leaf.
 * @param signer the authority that would sign a new one
 * @param lifeMs for how long that would be valid
 * @returns `undefined`: none
 */
export function faultOf(
  leaf: Leaf,
  subject: Subject | undefined,
  authorities: Authorities,
  signer: Certificate,
  time: AgreedTime,
  lifeMs: number,
): IssueReason | undefined {
  const { certificate } = leaf;
  if (leaf.texts === undefined) return 'missing';
  if (certificate === undefined || !leaf.keyFits) return 'unreadable';
  const issuer = issuerOf(certificate, authorities);
  if (issuer === undefined) return 'foreign';
  if (subject !== undefined && !isFor(certificate, subject)) return 'names';
  if (hasExpired(certificate, time) || hasExpired(issuer, time)) return 'expired';
  if (isNotYetValid(certificate, time) || isNotYetValid(issuer, time)) return 'not-yet-valid';
  if (isDue(certificate, time, validity(time, lifeMs, signer), lifeMs)) return 'due';
  if (authorities.phase === 'signing' && issuer !== authorities.newest.certificate) return 'authority';
  return undefined;
}

function issuerOf(certificate: Certificate, authorities: Authorities): Certificate | undefined {
  return trusted(authorities).find((each) => isIssuedBy(certificate, each));
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
