/**
 * A server for HTTP/1.1 with or without TLS: keep-alive longer than its clients', limits against slow and
 * numerous clients, certificates that change while it runs (`tls-files.ts`), and an end without lost
 * requests.
 *
 * HTTP/1.1 only: the API server offers nothing else to webhooks, and with one request at a time on a
 * connection, a Service spreads connections over replicas.
 */
import { once } from 'node:events';
import {
  createServer,
  ServerResponse,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { systemClock, type Clock } from '../async/clock.ts';
import { errnoOf } from '../files/read.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { parseListenAddress, ServingError, urlOf } from './address.ts';
import { Connections } from './connections.ts';
import { servingMetrics } from './metrics.ts';
import { openTlsFiles, loadCaFile, type TlsSource, createTlsServer } from './tls-files.ts';

export interface ServerTls {
  /** Directory with `tls.crt` and `tls.key`, and `ca.crt` for client certificates; or where else they are. */
  readonly source: string | TlsSource;
  /** Refuses connections without a client certificate signed by `ca.crt`. */
  readonly clientAuth?: boolean;
  /** Requests a client certificate by this CA file, read once. The handler requires it (`hasCertificate`). */
  readonly clientCaFile?: string | undefined;
  /** Interval for reading the directory again without events. */
  readonly pollMs?: number | undefined;
}

export interface ServerOptions {
  /** `host:port`, `[::1]:port`, or `:port` for all addresses. Port 0: any free port. */
  readonly listen: string;
  /** Handles all requests. If it throws, the error is logged and the connection closed. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void;
  readonly tls?: ServerTls;
  readonly log: Log;
  readonly metrics?: Metrics;
  readonly limits?: Partial<ServerLimits>;
  readonly clock?: Pick<Clock, 'sleep'>;
}

/** Interval for closing connections that become idle while the server drains. */
const sweepMs = 50;

export type RunningServer = Awaited<ReturnType<typeof startServer>>;

/** Resolves when the server listens. It closes the source of its certificate. @throws ServingError */
export async function startServer(options: ServerOptions) {
  const { listen, tls, log, metrics, clock = systemClock } = options;
  const limits = { ...serverLimits, ...options.limits };
  const { host, port } = parseListenAddress(listen);
  const clientCa = tls?.clientCaFile && (await loadCaFile(tls.clientCaFile));
  const ca = tls?.clientAuth === true;
  const source =
    typeof tls?.source === 'string'
      ? await openTlsFiles({ dir: tls.source, pollMs: tls.pollMs, use: 'server', ca, log, metrics })
      : tls?.source;
  const connections = new Connections(limits.maxConnections);
  let isDraining = false;
  let drained: Promise<void> | undefined;

  const http = {
    ServerResponse: closingResponse(() => isDraining),
    keepAliveTimeout: limits.keepAliveMs,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: limits.checkMs,
    maxHeaderSize: limits.maxHeaderBytes,
  };
  const handler = guarded(options);
  const { handshakeMs } = limits;
  const clientAuth = ca ? 'required' : clientCa ? 'requested' : 'none';
  const server = source
    ? createTlsServer(source, { handler, clientAuth, clientCa, handshakeMs, log, metrics }, http)
    : createServer(http, handler);
  server.maxConnections = limits.maxConnections;
  server.timeout = limits.stalledMs;
  const dropped = metrics?.counter(servingMetrics.droppedConnections);
  server.on('drop', () => dropped?.inc());
  server.on('connection', (socket: Socket) => {
    if (!connections.add(socket)) dropped?.inc();
  });
  try {
    server.listen({ port, host });
    await once(server, 'listening');
  } catch (error) {
    await source?.close();
    const advice = listenAdvice.get(errnoOf(error)) ?? String(error);
    throw new ServingError(`cannot listen on ${listen}: ${advice}`, { cause: error });
  }
  // Accepting can fail later, for lack of file descriptors. Without a listener, this would end the process.
  server.on('error', (error) => log.error({ err: error }, 'a connection could not be accepted'));

  async function drain(graceMs: number): Promise<void> {
    isDraining = true;
    const quietMs = Math.min(limits.quietMs, graceMs / 2);
    if (quietMs > 0) await clock.sleep(quietMs, new AbortController().signal);
    const closed = once(server, 'close');
    server.close();
    // `close` ends the connections that are idle now. Open requests leave idle connections later.
    const sweep = setInterval(() => server.closeIdleConnections(), sweepMs);
    const deadline = setTimeout(() => {
      log.warn({ connections: connections.size }, 'connections were cut at the end of the grace period');
      connections.cut();
    }, graceMs - quietMs);
    await closed;
    clearInterval(sweep);
    clearTimeout(deadline);
    await source?.close();
  }

  const { port: bound } = server.address() as AddressInfo;
  return {
    /** The bound port. */
    port: bound,
    /** The base URL, such as `https://127.0.0.1:8443`. */
    url: urlOf(source ? 'https' : 'http', host, bound),
    /** Stops accepting, answers open requests with `Connection: close`, and ends within `graceMs`. */
    drain: (graceMs: number): Promise<void> => (drained ??= drain(graceMs)),
  };
}

function guarded({ handler, log }: ServerOptions): ServerOptions['handler'] {
  return (request, response) => {
    try {
      handler(request, response);
    } catch (error) {
      log.error({ err: error }, 'a request handler threw; its connection is closed');
      response.destroy();
    }
  };
}

const listenAdvice: ReadonlyMap<unknown, string> = new Map([
  ['EADDRINUSE', 'another process listens there; choose another port'],
  ['EACCES', 'ports below 1024 need a privilege; choose a higher one'],
  ['EADDRNOTAVAIL', 'the machine does not have this address'],
]);

/**
 * The class of a server's responses. While the server drains, responses have `Connection: close`. The header
 * is added when headers are written, so that open requests get it too; otherwise it costs one comparison.
 */
export function closingResponse(draining: () => boolean): typeof ServerResponse {
  return class<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
    override writeHead(
      status: number,
      reason?: string | OutgoingHttpHeaders | OutgoingHttpHeader[],
      headers?: OutgoingHttpHeaders | OutgoingHttpHeader[],
    ): this {
      if (draining()) this.setHeader('connection', 'close');
      return typeof reason === 'string'
        ? super.writeHead(status, reason, headers)
        : super.writeHead(status, reason);
    }
  };
}

/** Limits of all servers. They protect the process from slow, dead or numerous clients. */
const serverLimits = {
  /**
   * Idle connections are closed after this. Go's transport in the API server closes them after 90 s. It does
   * not repeat a POST if the server closed the connection, so the client must close first.
   */
  keepAliveMs: 120_000,
  /** Time from the first byte of a request, or the connection, to the end of its headers: one packet. */
  headersMs: 10_000,
  /** Time from the first to the last byte. The API server waits 30 s at most (timeoutSeconds). */
  requestMs: 30_000,
  /** A TLS handshake is two round trips and about half a millisecond of work. */
  handshakeMs: 10_000,
  /** A connection with an open request is closed after this without traffic: twice the longest request. */
  stalledMs: 60_000,
  /** Interval for checking `headersMs` and `requestMs`. Once a second has no measurable cost. */
  checkMs: 1000,
  /** The API server sends less than 1 KiB. This is Node's default. */
  maxHeaderBytes: 16 * 1024,
  /**
   * An API server opens one connection for each open call and keeps 25 of them; 50 concurrent creates opened
   * about 100. At 50 KiB each, this is 100 MiB, the limit for a small pod. One remote address gets half of
   * them (`connections.ts`).
   */
  maxConnections: 2048,
  /**
   * While draining, responses announce the close for this long, before idle connections are closed. Busy
   * connections carry one more answer in this time. Connections that are idle then are rarely about to be
   * used.
   */
  quietMs: 1000,
};

export type ServerLimits = Readonly<typeof serverLimits>;
