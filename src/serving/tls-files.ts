/**
 * A certificate, its key and trusted authorities from a directory: `tls.crt`, `tls.key` and `ca.crt`, as in a
 * mounted Secret of type `kubernetes.io/tls`. Servers and clients of mutual TLS use the same files.
 *
 * The directory is watched and also read at intervals. If files cannot be used (half written, or certificate
 * and key do not match), the last good ones stay in force until the files change again, with one log line.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { basename, dirname, join } from 'node:path';
import { liveContent } from '../files/live.ts';
import { readText } from '../files/read.ts';
import { certificatesIn as pemCertificates } from '../http/tls/trust.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { reveal, secret, type Secret } from '../telemetry/secret.ts';
import { ServingError } from './error.ts';
import { servingMetrics, type CertificateUse } from './metrics.ts';
import { hashOf } from '../names/hash.ts';
import { messageOf } from '../names/printable.ts';

/** PEM texts that match. */
export interface TlsMaterial {
  /** The certificate and its intermediates. */
  readonly cert: string;
  readonly key: Secret;
  /** Trusted authorities, if they are required. */
  readonly ca: string | undefined;
  /** Earliest expiry of the certificate and its intermediates, in milliseconds since 1970. */
  readonly expires: number;
}

export interface TlsFiles {
  readonly current: () => TlsMaterial;
  /** Calls the listener after each reload. */
  readonly onChange: (listener: () => void) => void;
  readonly close: () => Promise<void>;
}

export interface TlsFilesOptions {
  readonly dir: string;
  readonly use: CertificateUse;
  /** Whether `ca.crt` is required; or another file with the authorities. */
  readonly ca: boolean | string;
  readonly log: Log;
  readonly metrics?: Metrics | undefined;
  /** Interval for reading the directory again without events. */
  readonly pollMs?: number | undefined;
}

/** A chain of ten P-521 or RSA certificates has 20 KiB, a bundle of all public authorities 230 KiB. */
const maxFileBytes = 512 * 1024;

/** Reads the files and follows them. @throws ServingError for a failure at the start */
export async function openTlsFiles(options: TlsFilesOptions): Promise<TlsFiles> {
  const { dir, log, metrics, use } = options;
  const expiry = metrics?.gauge(servingMetrics.certificateExpiry, { use });
  const loaded = metrics?.counter(servingMetrics.certificateReloads, { use, outcome: 'loaded' });
  const failed = metrics?.counter(servingMetrics.certificateReloads, { use, outcome: 'failed' });
  const listeners = new Set<() => void>();
  let current: TlsMaterial | undefined;

  function take(material: TlsMaterial): void {
    current = material;
    expiry?.set(material.expires / 1000);
    if (material.expires < Date.now())
      log.warn({ dir, expired: iso(material) }, 'the TLS certificate has expired');
  }

  const live = await liveContent({
    dirs: typeof options.ca === 'string' ? [dir, dirname(options.ca)] : [dir],
    read: () => loadTlsMaterial(dir, options.ca),
    fingerprint: ({ cert, key, ca = '' }) => hashOf([cert, reveal(key), ca]),
    onChange: (material) => {
      take(material);
      loaded?.inc();
      log.info({ dir, expires: iso(material) }, 'TLS files were loaded again');
      for (const listener of listeners) listener();
    },
    onProblem: (problem) => {
      if (current === undefined) return;
      failed?.inc();
      log.error(
        { dir, problem: problem.message },
        'TLS files cannot be used; the last good ones stay in force',
      );
    },
    pollMs: options.pollMs,
    log,
  });

  const first = live.current();
  if (first === undefined) {
    await live.close();
    throw live.problem() ?? new ServingError(`${dir} cannot be read`);
  }
  take(first);

  return {
    current: () => current ?? first,
    onChange: (listener) => void listeners.add(listener),
    close: () => live.close(),
  };
}

/** A certificate that is in no file and never changes. */
export function fixedTls({ cert, key }: Pick<TlsMaterial, 'cert' | 'key'>): TlsFiles {
  const material: TlsMaterial = { cert, key, ca: undefined, expires: earliestExpiry(cert) };
  return { current: () => material, onChange: () => undefined, close: () => Promise.resolve() };
}

/** Reads and checks the files once. @throws ServingError, with the file and what to do */
export async function loadTlsMaterial(dir: string, withCa: boolean | string): Promise<TlsMaterial> {
  const [caDir, caName] = typeof withCa === 'string' ? [dirname(withCa), basename(withCa)] : [dir, 'ca.crt'];
  // One after the other, so that the error for several missing files is always the same.
  const cert = await read(dir, 'tls.crt');
  const key = await read(dir, 'tls.key');
  const ca = withCa === false ? undefined : await read(caDir, caName);
  const certificate = check(dir, 'tls.crt', 'a certificate in PEM', () => new X509Certificate(cert));
  const expires = check(dir, 'tls.crt', 'certificates in PEM', () => earliestExpiry(cert));
  const privateKey = check(dir, 'tls.key', 'an unencrypted private key in PEM', () => createPrivateKey(key));
  if (ca !== undefined) check(caDir, caName, 'certificates in PEM', () => new X509Certificate(ca));
  if (!certificate.checkPrivateKey(privateKey)) {
    const message = `${join(dir, 'tls.key')} is not the key of ${join(dir, 'tls.crt')}; issue both together`;
    throw new ServingError(message);
  }
  return { cert, key: secret(key), ca, expires };
}

/** The certificates in a text. @throws for one that is none */
export function certificatesIn(pem: string): readonly X509Certificate[] {
  const found = pemCertificates(pem);
  return (found.length > 0 ? found : [pem]).map((each) => new X509Certificate(each));
}

function earliestExpiry(pem: string): number {
  const all = certificatesIn(pem);
  return Math.min(...all.map(({ validToDate }) => validToDate.getTime()));
}

async function read(dir: string, name: string): Promise<string> {
  const path = join(dir, name);
  try {
    return await readText(path, { maxBytes: maxFileBytes });
  } catch (error) {
    const advice = 'mount a Secret of type kubernetes.io/tls there';
    throw new ServingError(`TLS needs ${name}: ${messageOf(error)}; ${advice}`, { cause: error });
  }
}

function check<T>(dir: string, name: string, wanted: string, parse: () => T): T {
  try {
    return parse();
  } catch {
    // The parser's message is omitted: it may quote the file, which may be a key.
    throw new ServingError(`${join(dir, name)} is not ${wanted}; replace the file`);
  }
}

function iso(material: TlsMaterial): string {
  return new Date(material.expires).toISOString();
}
