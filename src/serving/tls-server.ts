/** A server for HTTPS, with certificates that change while it runs. */
import type { RequestListener, Server, ServerOptions as HttpOptions } from 'node:http';
import { createServer } from 'node:https';
import type { Socket } from 'node:net';
import { createSecureContext, TLSSocket, type SecureContext, type SecureContextOptions } from 'node:tls';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { reveal } from '../telemetry/secret.ts';
import { servingMetrics } from './metrics.ts';
import { ServingError } from './error.ts';
import type { TlsSource } from './tls-files.ts';

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
