/** Throwaway certificates in memory for tests and the demo: `createCa()` → `ca.issue({ … })` → PEM texts. */
import 'reflect-metadata';
import { randomBytes, type webcrypto } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const dayMs = 24 * 60 * 60 * 1000;

export interface IssueOptions {
  readonly cn: string;
  readonly organizations?: readonly string[];
  readonly dns?: readonly string[];
  readonly ip?: readonly string[];
  /** Extended key usages. Default: server authentication. */
  readonly server?: boolean;
  readonly client?: boolean;
  /** Validity. Default: from yesterday until tomorrow. */
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

export interface PemPair {
  readonly cert: string;
  /** PKCS #8, PEM. */
  readonly key: string;
}

export interface TestCa {
  readonly cert: string;
  readonly key: string;
  issue(options: IssueOptions): Promise<PemPair>;
  /** Another authority, with a certificate signed by this one. */
  intermediate(cn: string): Promise<TestCa>;
}

/**
 * Creates a certificate authority with a new key.
 * @param cn common name; two authorities of one name still do not trust each other's certificates
 */
export async function createCa(cn = 'archwright test CA'): Promise<TestCa> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: [{ CN: [cn] }],
    keys,
    signingAlgorithm: algorithm,
    notBefore: new Date(Date.now() - dayMs),
    notAfter: new Date(Date.now() + dayMs),
    extensions: await authorityExtensions(keys),
  });
  return authority(certificate, keys);
}

let authorityOfServers: Promise<TestCa> | undefined;
const serverPairs = new Map<string, Promise<PemPair>>();

/**
 * A test server's CA and certificate, for tests that do not check them. Created once per process and set of
 * names, because two keys and two certificates per server cost more than most tests.
 */
export async function sharedServer(
  options: IssueOptions,
): Promise<{ readonly ca: TestCa; readonly pair: PemPair }> {
  authorityOfServers ??= createCa();
  const ca = await authorityOfServers;
  const key = JSON.stringify(options);
  const pair = serverPairs.get(key) ?? ca.issue(options);
  serverPairs.set(key, pair);
  return { ca, pair: await pair };
}

async function authority(certificate: x509.X509Certificate, keys: webcrypto.CryptoKeyPair): Promise<TestCa> {
  return {
    cert: certificate.toString('pem'),
    key: await exportKey(keys.privateKey),
    issue: (options) => issue(certificate, keys, options),
    intermediate: async (cn) => {
      const own = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
      const signed = await x509.X509CertificateGenerator.create({
        serialNumber: serial(),
        subject: [{ CN: [cn] }],
        issuer: certificate.subjectName.toJSON(),
        publicKey: own.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: algorithm,
        notBefore: certificate.notBefore,
        notAfter: certificate.notAfter,
        extensions: [
          ...(await authorityExtensions(own)),
          await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey),
        ],
      });
      return authority(signed, own);
    },
  };
}

async function authorityExtensions(keys: webcrypto.CryptoKeyPair): Promise<x509.Extension[]> {
  return [
    new x509.BasicConstraintsExtension(true, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
    await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
  ];
}

async function issue(
  issuer: x509.X509Certificate,
  issuerKeys: webcrypto.CryptoKeyPair,
  options: IssueOptions,
): Promise<PemPair> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const usages = [
    ...((options.server ?? options.client !== true) ? [x509.ExtendedKeyUsage.serverAuth] : []),
    ...(options.client === true ? [x509.ExtendedKeyUsage.clientAuth] : []),
  ];
  const names = [
    ...(options.dns ?? []).map((value) => ({ type: 'dns' as const, value })),
    ...(options.ip ?? []).map((value) => ({ type: 'ip' as const, value })),
  ];
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial(),
    subject: [
      ...(options.organizations ?? []).map((organization) => ({ O: [organization] })),
      { CN: [options.cn] },
    ],
    issuer: issuer.subjectName.toJSON(),
    publicKey: keys.publicKey,
    signingKey: issuerKeys.privateKey,
    signingAlgorithm: algorithm,
    notBefore: options.notBefore ?? new Date(Date.now() - dayMs),
    notAfter: options.notAfter ?? new Date(Date.now() + dayMs),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(usages),
      ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
      await x509.AuthorityKeyIdentifierExtension.create(issuerKeys.publicKey),
    ],
  });
  return { cert: certificate.toString('pem'), key: await exportKey(keys.privateKey) };
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}

function serial(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString('hex');
}

/** Issues `tls.crt`, `tls.key` and `ca.crt` into a directory, readable by every user. @returns its path */
export async function issueTls(ca: TestCa, path: string, issue: IssueOptions): Promise<string> {
  const { cert, key } = await ca.issue(issue);
  mkdirSync(path, { recursive: true });
  for (const [file, pem] of Object.entries({ 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert }))
    writeFileSync(join(path, file), pem);
  return path;
}
