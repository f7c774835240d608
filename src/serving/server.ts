/**
 * A server as the program needs it: HTTP/1.1 with or without TLS, keep-alive that outlives its clients', limits against
 * slow and numerous clients, certificates that change while it runs, and an end that loses no request.
 *
 * HTTP/1.1 only: the API server offers nothing else to webhooks, and one request per connection lets a Service spread
 * connections over replicas. Limits and their reasons stand in `limits.ts`, certificates in `tls-files.ts`.
 */
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import type { IncomingMessage, Server, ServerOptions as HttpOptions, ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { parseListenAddress, urlOf, type ListenAddress } from './address.ts';
import { closingResponse } from './closing-response.ts';
import { ServingError } from './error.ts';
import { serverLimits, type ServerLimits } from './limits.ts';
import { droppedConnections, handshakeFailures } from './metrics.ts';
import { openTlsFiles, type TlsFiles } from './tls-files.ts';
import { reveal } from '../telemetry/secret.ts';

/** Contract of a running HTTP or HTTPS server. */
export interface RunningServer {
  /** `https://127.0.0.1:8443`, with the port that was bound. */
  readonly url: string;
  readonly port: number;
  /** Stops accepting, answers what is in flight with `Connection: close`, and ends after `graceMs` at the latest. */
  drain(graceMs: number): Promise<void>;
}

export interface ServerTls {
  /** Directory with `tls.crt` and `tls.key`, and `ca.crt` where clients must show a certificate. */
  readonly dir: string;
  /** Refuses every connection without a client certificate signed by `ca.crt`. */
  readonly clientAuth?: boolean;
  /** How often the directory is read again whether or not it was seen to change. */
  readonly pollMs?: number;
}

export interface ServerOptions {
  /** `host:port`, `[::1]:port`, or `:port` for every address; port 0 takes a free one. */
  readonly listen: string;
  /** Gets every request. It should not throw; where it does, the connection is closed and the error logged. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void;
  readonly tls?: ServerTls;
  readonly log: Log;
  readonly metrics?: Metrics;
  readonly limits?: Partial<ServerLimits>;
}

/**
 * Starts a server and resolves when it listens.
 * @throws ServingError where the address is wrong or taken, or the TLS files cannot be used
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const limits = { ...serverLimits, ...options.limits };
  const address = parseListenAddress(options.listen);
  const files = options.tls && (await openFiles(options, options.tls));

  let draining = false;
  const server = createServer(
    options,
    limits,
    files,
    closingResponse(() => draining),
  );
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  try {
    await listen(server, address);
  } catch (error) {
    await files?.close();
    throw cannotListen(options.listen, error);
  }
  // Accepting can fail later too, for want of file descriptors; without a listener that would end the process.
  server.on('error', (error) => options.log.error({ err: error }, 'a connection could not be accepted'));
  const { port } = server.address() as AddressInfo;

  async function end(graceMs: number): Promise<void> {
    draining = true;
    const quietMs = Math.min(limits.quietMs, graceMs / 2);
    await pause(quietMs);
    const closed = once(server, 'close');
    server.close();
    // `close` ends the connections that are idle now; an answer under way at that moment leaves one behind.
    const sweep = setInterval(() => server.closeIdleConnections(), sweepMs);
    const deadline = setTimeout(() => {
      options.log.warn({ connections: sockets.size }, 'connections were cut at the end of the grace period');
      for (const socket of sockets) socket.destroy();
    }, graceMs - quietMs);
    await closed;
    clearInterval(sweep);
    clearTimeout(deadline);
    await files?.close();
  }

  let ended: Promise<void> | undefined;
  return {
    url: urlOf(files ? 'https' : 'http', address.host, port),
    port,
    drain: (graceMs) => (ended ??= end(graceMs)),
  };
}

/** While the last answers of a draining server go out: how often connections that became idle are closed. */
const sweepMs = 50;

function openFiles(options: ServerOptions, tls: ServerTls): Promise<TlsFiles> {
  return openTlsFiles({
    dir: tls.dir,
    use: 'server',
    ca: tls.clientAuth === true,
    log: options.log,
    ...(tls.pollMs !== undefined && { pollMs: tls.pollMs }),
    ...(options.metrics && { metrics: options.metrics }),
  });
}

function createServer(
  options: ServerOptions,
  limits: ServerLimits,
  files: TlsFiles | undefined,
  responseClass: typeof ServerResponse,
): Server {
  const http = {
    ServerResponse: responseClass,
    keepAliveTimeout: limits.keepAliveMs,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: limits.checkMs,
    maxHeaderSize: limits.maxHeaderBytes,
  };
  const handler = guarded(options);
  const server = files
    ? createTlsServer(options, limits, files, http, handler)
    : createHttpServer(http, handler);
  server.maxConnections = limits.maxConnections;
  const dropped = options.metrics?.counter(droppedConnections);
  server.on('drop', () => dropped?.inc());
  server.timeout = limits.stalledMs;
  return server;
}

function createTlsServer(
  options: ServerOptions,
  limits: ServerLimits,
  files: TlsFiles,
  http: HttpOptions,
  handler: ServerOptions['handler'],
): Server {
  const clientAuth = options.tls?.clientAuth === true;
  let partial = partialContext(files);
  const server = createHttpsServer(
    {
      ...http,
      ...contextOptions(files),
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: limits.handshakeMs,
      requestCert: clientAuth,
      rejectUnauthorized: true,
      // Clients that name the server get this context; others get the server's own.
      ...(clientAuth && { SNICallback: (_name, done) => done(null, partial) }),
    },
    handler,
  );
  files.onChange(() => {
    server.setSecureContext(contextOptions(files));
    partial = partialContext(files);
  });

  const failures = options.metrics?.counter(handshakeFailures);
  server.on('tlsClientError', (error: Error, socket) => {
    failures?.inc();
    options.log.debug({ reason: error.message, peer: socket.remoteAddress }, 'TLS handshake failed');
  });
  return server;
}

/** Everything that `setSecureContext` replaces has to be said each time, the lowest version too. */
function contextOptions(files: TlsFiles): SecureContextOptions {
  const { cert, key, ca } = files.current();
  return { cert, key: reveal(key), minVersion: 'TLSv1.2', ...(ca !== undefined && { ca }) };
}

/**
 * A context for which an authority in `ca.crt` need not be a root, as it is none where whoever issued it knows no root (cert-manager). The
 * options of a server have no word for that (Node 24).
 */
function partialContext(files: TlsFiles): SecureContext {
  return createSecureContext({ ...contextOptions(files), allowPartialTrustChain: true });
}

function guarded(options: ServerOptions): ServerOptions['handler'] {
  return (request, response) => {
    try {
      options.handler(request, response);
    } catch (error) {
      options.log.error({ err: error }, 'a request handler threw; its connection is closed');
      response.destroy();
    }
  };
}

async function listen(server: Server, address: ListenAddress): Promise<void> {
  server.listen(
    address.host === undefined ? { port: address.port } : { port: address.port, host: address.host },
  );
  await once(server, 'listening');
}

function cannotListen(where: string, error: unknown): ServingError {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const advice =
    code === 'EADDRINUSE'
      ? 'another process listens there; choose another port'
      : code === 'EACCES'
        ? 'ports below 1024 need a privilege; choose a higher one'
        : code === 'EADDRNOTAVAIL'
          ? 'the machine does not have this address'
          : String(error);
  return new ServingError('cannot-listen', where, `cannot listen on ${where}: ${advice}`, error);
}
