/**
 * Which certificates are trusted: Node's own roots, the system's bundle (below the host root, because the agent must
 * trust what its node trusts), `SSL_CERT_FILE`, and files of our configuration. Node's `ca` option replaces the roots
 * where Go's adds to them, so everything is put together here. Files are looked at again after a while.
 */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import type { Clock } from '../telemetry/clock.ts';
import type { Environment } from './proxy.ts';

/** Where distributions keep the bundle; the first that exists is used (Go crypto/x509 root_linux.go). */
const systemBundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/** The largest bundles in use are about 500 KiB; more is no certificate bundle. */
const maxBundleBytes = 8 * 1024 * 1024;

/** A rotated corporate CA should work without a restart, and reading a bundle costs milliseconds. */
const rereadMs = 60_000;

export interface TrustOptions {
  readonly environment: Environment;
  readonly clock: Clock;
  /** Root of the node's file system; `/` by default. */
  readonly hostRoot?: string;
  /** Further PEM files, as our configuration names them; not below the host root. */
  readonly extraFiles?: readonly string[];
  /** Told of each file that was named and cannot be used. */
  readonly onProblem?: (file: string, message: string) => void;
}

export interface Roots {
  readonly certificates: readonly string[];
  /** Equal for equal certificates. */
  readonly id: string;
}

export interface Trust {
  /** The roots of this moment; never fails, because Node's own are always there. */
  roots(): Promise<Roots>;
}

/** Makes the trust of one process. Files are read at the first use. */
export function createTrust(options: TrustOptions): Trust {
  let current: Promise<Roots> | undefined;
  let readAt = 0;
  const reported = new Set<string>();

  function report(file: string, message: string): void {
    if (reported.has(file)) return;
    reported.add(file);
    options.onProblem?.(file, message);
  }

  async function read(): Promise<Roots> {
    const certificates = new Set(rootCertificates.map((pem) => pem.trim()));
    const add = async (file: string, named: boolean): Promise<boolean> => {
      try {
        const found = certificatesIn(await readBounded(file));
        if (found.length === 0) throw new Error('it holds no PEM certificate');
        for (const pem of found) certificates.add(pem);
        return true;
      } catch (error) {
        if (named) report(file, error instanceof Error ? error.message : String(error));
        return false;
      }
    };
    const root = options.hostRoot ?? '/';
    for (const bundle of systemBundles) if (await add(join(root, bundle), false)) break;
    const variable = options.environment['SSL_CERT_FILE'];
    if (variable) await add(join(root, variable), true);
    for (const file of options.extraFiles ?? []) await add(file, true);
    const list = [...certificates];
    return { certificates: list, id: createHash('sha256').update(list.join('\n')).digest('hex') };
  }

  return {
    roots: () => {
      const now = options.clock.monotonic();
      if (current === undefined || now - readAt >= rereadMs) {
        readAt = now;
        current = read();
      }
      return current;
    },
  };
}

/** The PEM certificates of a text, in its order; everything between them is left out. */
export function certificatesIn(text: string): string[] {
  return text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}

async function readBounded(file: string): Promise<string> {
  const handle = await open(file, 'r');
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) throw new Error('it is not a file');
    if (stat.size > maxBundleBytes) throw new Error(`it is larger than ${maxBundleBytes} bytes`);
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}
