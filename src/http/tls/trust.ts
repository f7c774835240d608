/**
 * Trusted certificates: Node's own roots, the system's bundle (below the host root, because the agent must
 * trust what its node trusts), `SSL_CERT_FILE`, and configured files. Node's `ca` option replaces the roots
 * instead of adding to them as in Go, so all are combined here. Links in the node's files lead to other files
 * of the node: distributions link their bundles by absolute paths.
 */
import { rootCertificates } from 'node:tls';
import type { SourcePart } from '../../files/source-part.ts';
import { FileError, readBounded } from '../../files/read.ts';
import type { Clock } from '../../async/clock.ts';
import { hashOf } from '../../names/hash.ts';
import type { Environment } from '../proxy/proxy.ts';
import type { Secret } from '../../telemetry/secret.ts';

/** Bundles of the distributions; the first that exists is used (Go crypto/x509 root_linux.go). */
const systemBundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/** The largest bundles in use have about 500 KiB. */
const maxBundleBytes = 8 * 1024 * 1024;

/** A rotated corporate CA must work without a restart; reading a bundle takes milliseconds. */
const rereadMs = 60_000;

interface TrustOptions {
  readonly environment: Environment;
  readonly clock: Clock;
  /** Root of the node's file system. Default: `/`. */
  readonly hostRoot?: string | undefined;
  /** Configured PEM files; not below the host root. */
  readonly extraFiles?: readonly string[] | undefined;
  /** Called once for each named file that cannot be used. */
  readonly onProblem?: ((file: string, message: string) => void) | undefined;
}

export interface Roots {
  readonly certificates: readonly string[];
  /** Equal for equal certificates. */
  readonly id: string;
}

export type Trust = ReturnType<typeof createTrust>;

/** Files are read on first use. */
export function createTrust(options: TrustOptions) {
  let current: Promise<Roots> | undefined;
  let readAt = 0;
  const reported = new Set<string>();

  async function read(): Promise<Roots> {
    const { bundles } = await readBundles(options);
    for (const { file, problem } of bundles) {
      if (problem === undefined || reported.has(file)) continue;
      reported.add(file);
      options.onProblem?.(file, problem);
    }
    const found = bundles.flatMap(({ certificates }) => certificates);
    const list = [...new Set([...rootCertificates.map((pem) => pem.trim()), ...found])];
    return { certificates: list, id: hashOf(list) };
  }

  return {
    /** Never fails, because Node's own roots always exist. */
    roots: (): Promise<Roots> => {
      const now = options.clock.monotonic();
      if (current === undefined || now - readAt >= rereadMs) {
        readAt = now;
        current = read();
      }
      return current;
    },
  };
}

/** The PEM certificates in a text, in order, without the text between them. */
export function pemCertificatesIn(text: string): string[] {
  return text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}

/** The trusted files besides Node's own roots, for people. */
export async function describeTrust(options: Omit<TrustOptions, 'clock'>): Promise<readonly SourcePart[]> {
  const { bundles, hasSystemBundle } = await readBundles(options);
  const parts = bundles.map(({ file, certificates, problem }): SourcePart =>
    problem === undefined
      ? { where: file, state: 'used', what: `certificates: ${certificates.length}` }
      : { where: file, state: 'left-out', what: problem },
  );
  if (hasSystemBundle) return parts;
  const what = 'no system certificates found; the ones built into Node.js are trusted';
  return [{ where: systemBundles.join(', '), state: 'absent', what }, ...parts];
}

interface Bundle {
  /** The path as it was named. */
  readonly file: string;
  readonly certificates: readonly string[];
  readonly problem?: string | undefined;
}

async function readBundles({
  environment,
  hostRoot = '/',
  extraFiles = [],
}: Omit<TrustOptions, 'clock'>): Promise<{ bundles: readonly Bundle[]; hasSystemBundle: boolean }> {
  const bundles: Bundle[] = [];
  for (const file of systemBundles) {
    const bundle = await readBundle(file, hostRoot);
    if (bundle.problem !== undefined) continue;
    bundles.push(bundle);
    break;
  }
  const hasSystemBundle = bundles.length > 0;
  const variable = environment['SSL_CERT_FILE'];
  if (variable) bundles.push(await readBundle(variable, hostRoot));
  for (const file of extraFiles) bundles.push(await readBundle(file));
  return { bundles, hasSystemBundle };
}

async function readBundle(file: string, root?: string): Promise<Bundle> {
  try {
    const bytes = await readBounded(file, { maxBytes: maxBundleBytes, root });
    // PEM is ASCII; the text between certificates may be in any encoding.
    const certificates = pemCertificatesIn(bytes.toString('latin1'));
    if (certificates.length === 0) throw new FileError('not-text', file, 'it contains no PEM certificate');
    return { file, certificates };
  } catch (error) {
    if (error instanceof FileError) return { file, certificates: [], problem: error.message };
    throw error;
  }
}

export interface TlsSettings {
  /** PEM texts trusted besides the system's roots. */
  readonly ca: readonly string[];
  /** Client certificates, PEM; the key may be in the same text. */
  readonly client: readonly { readonly certificate: string; readonly key: Secret }[];
  readonly skipVerify: boolean;
}
