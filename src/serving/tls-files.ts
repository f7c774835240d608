/**
 * A certificate, its key and trusted authorities: `tls.crt`, `tls.key` and `ca.crt`, from a directory or from a
 * Secret of type `kubernetes.io/tls` (`cluster/tls-secret.ts`). Servers and clients of mutual TLS use the same
 * content.
 *
 * The directory is watched and also read at intervals. If the content cannot be used (half written, or certificate
 * and key do not match), the last good one stays in force until it changes again, with one log line.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import type { RequestListener, Server, ServerOptions as HttpOptions } from 'node:http';
import { createServer } from 'node:https';
import type { Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { createSecureContext, TLSSocket, type SecureContext, type SecureContextOptions } from 'node:tls';
import { liveContent } from '../files/live.ts';
import { readText } from '../files/read.ts';
import { pemCertificatesIn } from '../http/tls/trust.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { reveal, secret, type Secret } from '../telemetry/secret.ts';
import { ServingError } from './address.ts';
import { servingMetrics, type CertificateUse } from './metrics.ts';
import { hashOf } from '../names/hash.ts';
import { messageOf } from '../names/printable.ts';

/** PEM texts, not checked yet. */
export interface TlsTexts {
  /** The certificate and its intermediates. */
  readonly cert: string;
  readonly key: Secret;
  /** Trusted authorities. */
  readonly ca: string | undefined;
}

/** Texts that match. */
export interface TlsMaterial extends TlsTexts {
  /** Earliest expiry of the certificate and its intermediates, in milliseconds since 1970. */
  readonly expires: number;
}

export interface TlsSource {
  /** `undefined`: there is none yet. */
  readonly current: () => TlsMaterial | undefined;
  /** Calls the listener after each change. */
  readonly onChange: (listener: () => void) => void;
  /** Resolves when there is one. @throws AbortError */
  readonly ready: (signal: AbortSignal) => Promise<void>;
  /** Why there is none yet. */
  readonly problem: () => string;
  readonly close: () => Promise<void>;
}

export interface TlsReports {
  readonly use: CertificateUse;
  readonly log: Log;
  readonly metrics?: Metrics | undefined;
}

export interface TlsFilesOptions extends TlsReports {
  readonly dir: string;
  /** Whether `ca.crt` is required. */
  readonly ca: boolean;
  /** Interval for reading the directory again without events. */
  readonly pollMs?: number | undefined;
}

/** A chain of ten P-521 or RSA certificates has 20 KiB, a bundle of all public authorities 230 KiB. */
const maxFileBytes = 512 * 1024;

/** Reads the files and follows them. @throws ServingError for a failure at the start */
export async function openTlsFiles(options: TlsFilesOptions) {
  const { dir, ca, pollMs, log } = options;
  const held = holdTls(dir, options);
  const live = await liveContent({
    dirs: [dir],
    read: () => loadTlsMaterial(dir, ca),
    fingerprint: identityOf,
    onChange: held.take,
    // The first one is thrown below.
    onProblem: (problem) => held.current() && held.refuse(problem),
    pollMs,
    log,
  });
  const first = live.current();
  if (first === undefined) {
    await live.close();
    throw live.problem() ?? new ServingError(`${dir} cannot be read`);
  }
  held.take(first);
  return { ...held, current: () => held.current() ?? first, close: () => live.close() };
}

/** The last good content of a directory or a Secret. @param origin for the log */
export function holdTls(origin: string, { use, log, metrics }: TlsReports) {
  const expiry = metrics?.gauge(servingMetrics.certificateExpiry, { use });
  const changes = new EventEmitter().setMaxListeners(0);
  let current: TlsMaterial | undefined;
  let problem = 'it does not exist, or may not be read';
  return {
    current: () => current,
    onChange: (listener: () => void) => void changes.on('change', listener),
    ready: async (signal: AbortSignal) => {
      if (!current) await once(changes, 'change', { signal });
    },
    problem: () => `${origin}: ${problem}`,
    take: (material: TlsMaterial): void => {
      const before = current && identityOf(current);
      if (identityOf(material) === before) return;
      current = material;
      expiry?.set(material.expires / 1000);
      const expires = new Date(material.expires).toISOString();
      if (material.expires < Date.now()) log.warn({ origin, expires }, 'the TLS certificate has expired');
      if (before !== undefined) log.info({ origin, expires }, 'a TLS certificate was loaded again');
      changes.emit('change');
    },
    refuse: (error: unknown): void => {
      problem = messageOf(error);
      const consequence = current ? 'the last good one stays in force' : 'it must be written again';
      log.error({ origin, problem }, `a TLS certificate cannot be used; ${consequence}`);
    },
  };
}

function identityOf({ cert, key, ca = '' }: TlsTexts): string {
  return hashOf([cert, reveal(key), ca]);
}

/** A certificate that never changes. */
export function fixedTls({ cert, key }: Pick<TlsTexts, 'cert' | 'key'>): TlsSource {
  const material: TlsMaterial = { cert, key, ca: undefined, expires: earliestExpiry(cert) };
  const isReady = (): Promise<void> => Promise.resolve();
  return {
    current: () => material,
    onChange: () => undefined,
    ready: isReady,
    problem: () => '',
    close: isReady,
  };
}

/** Reads and checks the files once. @throws ServingError, with the file and what to do */
export async function loadTlsMaterial(dir: string, withCa: boolean): Promise<TlsMaterial> {
  // One after the other, so that the error for several missing files is always the same.
  const cert = await read(dir, 'tls.crt');
  const key = secret(await read(dir, 'tls.key'));
  const ca = withCa ? await read(dir, 'ca.crt') : undefined;
  return checkTls({ cert, key, ca }, (name) => join(dir, name));
}

/** @param nameOf names a file or a key of a Secret, for messages @throws ServingError, which quotes no content */
export function checkTls(texts: TlsTexts, nameOf: (name: string) => string): TlsMaterial {
  const { cert, key, ca } = texts;
  const [certName, keyName] = [nameOf('tls.crt'), nameOf('tls.key')];
  const certificate = parsed(certName, 'a certificate in PEM', () => new X509Certificate(cert));
  const expires = parsed(certName, 'certificates in PEM', () => earliestExpiry(cert));
  const unencrypted = 'an unencrypted private key in PEM';
  const privateKey = parsed(keyName, unencrypted, () => createPrivateKey(reveal(key)));
  if (ca !== undefined) parsed(nameOf('ca.crt'), 'certificates in PEM', () => new X509Certificate(ca));
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new ServingError(`${keyName} is not the key of ${certName}; issue both together`);
  }
  return { ...texts, expires };
}

/** The authorities in a file. @throws ServingError */
export async function loadCaFile(path: string): Promise<string> {
  const ca = await read(dirname(path), basename(path));
  parsed(path, 'certificates in PEM', () => new X509Certificate(ca));
  return ca;
}

/** @throws ServingError without the parser's message, which may quote a key */
function parsed<T>(where: string, wanted: string, parse: () => T): T {
  try {
    return parse();
  } catch {
    throw new ServingError(`${where} is not ${wanted}; replace it`);
  }
}

/** The certificates in a text. @throws for one that is none */
export function certificatesIn(pem: string): readonly X509Certificate[] {
  const found = pemCertificatesIn(pem);
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

export interface TlsServerOptions {
  readonly handler: RequestListener;
  /** `required`: refuses connections without a client certificate. */
  readonly clientAuth: 'required' | 'requested' | 'none';
  /** Authorities of clients, PEM. Default: those of the source. */
  readonly clientCa?: string | undefined;
  readonly handshakeMs: number;
  readonly log: Log;
  readonly metrics?: Metrics | undefined;
}

/** Makes a server for HTTPS, with certificates that change while it runs. */
export function createTlsServer(source: TlsSource, options: TlsServerOptions, http: HttpOptions): Server {
  const { handler, clientAuth, clientCa, handshakeMs, log, metrics } = options;
  /** `setSecureContext` replaces all of these options, so each call needs all of them. */
  const context = (): SecureContextOptions => {
    const material = source.current();
    if (!material) throw new ServingError('there is no TLS certificate yet');
    const ca = clientAuth === 'none' ? undefined : (clientCa ?? material.ca);
    return { cert: material.cert, key: reveal(material.key), minVersion: 'TLSv1.2', ...(ca && { ca }) };
  };
  /** Trusts authorities that are not roots (cert-manager); no option of servers (Node 24). */
  const partialContext = (): SecureContext =>
    createSecureContext({ ...context(), allowPartialTrustChain: true });
  let partial = partialContext();
  const server = createServer(
    {
      ...http,
      ...context(),
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: handshakeMs,
      requestCert: clientAuth !== 'none',
      rejectUnauthorized: clientAuth === 'required',
      // For clients that send a server name; others get the server's own context.
      ...(clientAuth !== 'none' && { SNICallback: (_name, done) => done(null, partial) }),
    },
    handler,
  );
  source.onChange(() => {
    server.setSecureContext(context());
    partial = partialContext();
  });

  const failures = metrics?.counter(servingMetrics.handshakeFailures);
  server.on('tlsClientError', (error: Error, socket) => {
    failures?.inc();
    log.debug({ reason: error.message, peer: socket.remoteAddress }, 'TLS handshake failed');
  });
  return server;
}

/**
 * Whether a client of a server with `clientCaFile` has shown a certificate that the server trusts. A resumed
 * session counts as authorized without one (Node 24, `VerifyPeerCertificate`), so the certificate itself must
 * be there.
 */
export function hasCertificate(socket: Socket): boolean {
  return socket instanceof TLSSocket && socket.authorized && socket.getPeerX509Certificate() !== undefined;
}
