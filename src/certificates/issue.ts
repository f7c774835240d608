/**
 * Issues P-256 certificates with SHA-256 (RFC 5280): a self-signed authority, and leaves. The library is
 * loaded on first use: it takes some 20 MiB, which webhook and agents do not need.
 */
import { createPrivateKey, KeyObject, randomBytes, type webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import { reveal, secret, type Secret } from '../telemetry/secret.ts';
import { readCertificates, type Certificate } from './pem.ts';

export interface Pair {
  readonly certificate: Certificate;
  /** PKCS #8, PEM. */
  readonly key: Secret;
}

export interface Subject {
  readonly commonName: string;
  /** DNS names and IP addresses. */
  readonly names: readonly string[];
  readonly usage: 'server' | 'client';
}

/** RFC 5280, 4.2.1.12. */
export const usageIds = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' } as const;

/**
 * A certificate is valid from this long before it is issued, because nodes' clocks are wrong by minutes. The
 * signers of Kubernetes do the same (pkg/controller/certificates/signer: 5 min).
 */
export const backdateMs = 5 * 60_000;

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** First and last instant, milliseconds since 1970. */
export interface Validity {
  readonly from: number;
  readonly to: number;
}

/** Makes a new authority with a unique name, because verifiers find the issuer by name. */
export async function issueAuthority({ from, to }: Validity): Promise<Pair> {
  const { x509 } = await import('./library.ts');
  const keys = await newKeys();
  const made = new Date(from).toISOString().replace(/\.\d+/, '');
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: [{ CN: [`archwright CA ${made} ${randomBytes(4).toString('hex')}`] }],
    keys,
    signingAlgorithm: algorithm,
    notBefore: new Date(from),
    notAfter: new Date(to),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return pair(certificate.toString('pem'), keys);
}

/** Issues a certificate with a new key, which ends with its authority at the latest. */
export async function issueLeaf(authority: Pair, subject: Subject, validity: Validity): Promise<Pair> {
  const keys = await newKeys();
  return pair(await issueFor(keys.publicKey, authority, subject, validity), keys);
}

/** Issues a certificate for a key of another program. @returns PEM */
export async function issueFor(
  publicKey: webcrypto.CryptoKey,
  authority: Pair,
  subject: Subject,
  { from, to }: Validity,
): Promise<string> {
  const { x509 } = await import('./library.ts');
  const issuer = new x509.X509Certificate(authority.certificate.pem);
  const names = subject.names.map((value) => ({
    type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const),
    value,
  }));
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial(),
    subject: [{ CN: [subject.commonName] }],
    issuer: issuer.subjectName.toJSON(),
    publicKey,
    signingKey: await importKey(authority.key),
    signingAlgorithm: algorithm,
    notBefore: new Date(from),
    notAfter: new Date(Math.min(to, authority.certificate.to)),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([usageIds[subject.usage]]),
      ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(await issuer.publicKey.export()),
    ],
  });
  return certificate.toString('pem');
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
}

function pair(pem: string, keys: webcrypto.CryptoKeyPair): Pair {
  const [certificate] = readCertificates(pem) ?? [];
  if (certificate === undefined) throw new TypeError('the issued certificate cannot be read');
  const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' });
  return { certificate, key: secret(key.toString()) };
}

function importKey(key: Secret): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(reveal(key)).export({ type: 'pkcs8', format: 'der' });
  return crypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign']);
}

/** 126 random bits; positive and without a leading zero byte, as DER requires. */
function serial(): string {
  const bytes = randomBytes(16);
  bytes.writeUInt8((bytes.readUInt8() & 0x3f) | 0x40);
  return bytes.toString('hex');
}
