/** Certificates in Secrets and in `caBundle`: PEM texts with one or several. */
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { pemCertificatesIn } from '../http/tls/trust.ts';

export interface Certificate {
  readonly pem: string;
  readonly x509: X509Certificate;
  /** SHA-256 of the certificate, in hex. */
  readonly id: string;
  /** First and last instant of its validity, milliseconds since 1970. */
  readonly from: number;
  readonly to: number;
}

/** A bundle of every public authority has some 150; ours have one to five. */
const maxCertificates = 200;

/**
 * Reads every certificate of a text and ignores text between them.
 * @returns in order, without duplicates; `undefined`: none, too many, or an unreadable one
 */
export function readCertificates(text = ''): readonly Certificate[] | undefined {
  const blocks = pemCertificatesIn(text);
  if (blocks.length === 0 || blocks.length > maxCertificates) return undefined;
  // Otherwise a damaged block would go unnoticed.
  if (text.split('-----BEGIN ').length - 1 !== blocks.length) return undefined;
  try {
    return distinct(blocks.map((pem) => readOne(pem)));
  } catch {
    return undefined;
  }
}

function readOne(pem: string): Certificate {
  const x509 = new X509Certificate(pem);
  return {
    // Normalized: equal certificates are equal texts.
    pem: x509.toString(),
    x509,
    id: x509.fingerprint256.replaceAll(':', '').toLowerCase(),
    from: x509.validFromDate.getTime(),
    to: x509.validToDate.getTime(),
  };
}

export function distinct(certificates: readonly Certificate[]): readonly Certificate[] {
  return [...new Map(certificates.map((each) => [each.id, each])).values()];
}

export function writeCertificates(certificates: readonly Certificate[]): string {
  return certificates.map(({ pem }) => pem).join('');
}

/** Their order does not matter. */
export function sameCertificates(
  a: readonly Certificate[] | undefined,
  b: readonly Certificate[] | undefined,
): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.length === b.length && a.every(({ id }) => b.some((other) => other.id === id));
}

/** @returns `undefined`: not an unencrypted private key on P-256 */
export function readPrivateKey(pem: string | undefined): KeyObject | undefined {
  if (pem === undefined) return undefined;
  try {
    const key = createPrivateKey(pem);
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a certificate was issued by this authority: by name, by key identifier, and by signature. */
export function isIssuedBy(certificate: Certificate, authority: Certificate): boolean {
  return certificate.x509.checkIssued(authority.x509) && certificate.x509.verify(authority.x509.publicKey);
}
