/**
 * One HTTP exchange on a kept-alive connection, for every client in this program: API server, agents and
 * registries. Each phase has its own time limit, and the socket is closed as soon as the caller gives up.
 * Redirects are not followed. `body.ts` reads the response under a limit in bytes.
 */
import { request as httpRequest, type Agent, type ClientRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { reveal } from '../telemetry/secret.ts';
import type { Proxy } from './proxy/proxy.ts';
import { bareHost, portOf } from './reach/address.ts';
import {
  TransportError,
  transportError,
  type ExchangePhase,
  type TransportFailure,
} from './transport-error.ts';

/** Node's default, written down because a larger one would serve only hostile servers. */
const maxHeaderBytes = 16 * 1024;

/** A server may close an idle connection as it is used again. Three such races in a row are a fault. */
const maxRepeats = 2;

/** Milliseconds. A phase without a limit ends with the signal or with `totalMs`. */
export interface PhaseLimits {
  /** Name resolution and connection; TLS too unless `tlsMs` is set. */
  readonly dialMs: number;
  readonly tlsMs?: number;
  /** Time from the request sent to the header received. */
  readonly headerMs?: number;
  /** Silence inside a body, counted only while the caller waits for more. */
  readonly idleMs?: number;
  /** The whole exchange, including the body. */
  readonly totalMs?: number;
}

export interface ExchangeRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'DELETE';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Called with a connection, right before the request is sent. An error ends the exchange. */
  readonly beforeSend?: (() => void) | undefined;
  /** Connections to use; they decide about TLS and addresses. */
  readonly pool: Agent;
  readonly limits: PhaseLimits;
  /** Whether to resend if a kept-alive connection proves closed. Only for requests without effects. */
  readonly repeatable: boolean;
  readonly proxy?: Proxy | undefined;
  /** Name that the server's certificate must have. Default: the pool's, or the host of the URL. */
  readonly serverName?: string | undefined;
}

/** A response with an unread body. The caller reads the body to its end, or calls `close`. */
export interface OpenResponse {
  /** Host and port of the request, for messages. */
  readonly where: string;
  readonly status: number;
  /** One text for each header line: joined lines could not be told apart. */
  readonly headers: Readonly<Record<string, readonly string[] | undefined>>;
  /** Address of the server; absent behind a proxy. */
  readonly remoteAddress: string | undefined;
  /** The body in pieces. Leaving the loop early closes the connection. @throws TransportError */
  chunks(): AsyncIterable<Buffer>;
  /** Closes the connection, unless the body was read to its end. Reading then fails with `reason`. */
  close(reason?: TransportError): void;
}

/** Sends a request and waits for the header of its response, whatever the status. @throws TransportError */
export async function openExchange(request: ExchangeRequest, signal: AbortSignal): Promise<OpenResponse> {
  for (let repeats = 0; ; repeats += 1) {
    const attempt = startAttempt(request, signal);
    try {
      return await attempt.response;
    } catch (error) {
      if (!attempt.wasStale() || repeats === maxRepeats) throw error;
      closeIdle(request.pool, request.url);
    }
  }
}

function startAttempt(request: ExchangeRequest, signal: AbortSignal) {
  const { url, limits } = request;
  const where = url.host;
  const { promise: response, resolve, reject } = Promise.withResolvers<OpenResponse>();
  let phase: ExchangePhase = 'connect';
  let phaseTimer: NodeJS.Timeout | undefined;
  let sent: ClientRequest | undefined;
  let received: IncomingMessage | undefined;
  /** The first thing that went wrong. What sockets report after it is only its consequence. */
  let failure: TransportError | undefined;
  const total = startTimer('total-timeout', limits.totalMs, 'the whole exchange');

  function start(): void {
    signal.addEventListener('abort', abort, { once: true });
    try {
      sent = createRequest(request, signal);
      sent.on('error', (error) => fail(error));
      sent.on('socket', (socket) => watchConnection(socket));
      sent.on('response', (message) => resolve(respond(message)));
      sent.end(request.body);
    } catch (error) {
      fail(error);
    }
  }

  /** @param socket new, kept alive, or of a tunnel, after TLS; time in the pool's queue counts for no phase */
  function watchConnection(socket: Socket): void {
    if (!socket.connecting) return sendNow();
    enter('dial-timeout', limits.dialMs, 'connecting');
    socket.once('connect', () => {
      if (!(socket instanceof TLSSocket)) return sendNow();
      if (limits.tlsMs !== undefined) enter('tls-timeout', limits.tlsMs, 'the TLS handshake');
      socket.once('secureConnect', () => sendNow());
    });
  }

  /** In the same turn of the event loop Node writes what `end` has left in the request. */
  function sendNow(): void {
    try {
      request.beforeSend?.();
    } catch (error) {
      fail(error);
      return;
    }
    phase = 'header';
    enter('header-timeout', limits.headerMs, 'waiting for a response');
  }

  function respond(message: IncomingMessage): OpenResponse {
    phase = 'body';
    received = message;
    clearTimeout(phaseTimer);
    return {
      where,
      status: message.statusCode ?? 0,
      headers: message.headersDistinct,
      remoteAddress: request.proxy ? undefined : message.socket.remoteAddress,
      chunks: () => read(message),
      close: (reason) => {
        if (message.readableEnded) stopTimers();
        else fail(reason ?? new TransportError('closed', where, 'closed by the client'));
      },
    };
  }

  async function* read(message: IncomingMessage): AsyncGenerator<Buffer> {
    const wait = (): void => enter('idle-timeout', limits.idleMs, 'a silence inside the response');
    try {
      if (failure) throw failure;
      wait();
      for await (const chunk of message as AsyncIterable<Buffer>) {
        clearTimeout(phaseTimer);
        yield chunk;
        wait();
      }
    } catch (error) {
      throw fail(error);
    } finally {
      stopTimers();
    }
  }

  function abort(): void {
    fail(new TransportError('aborted', where, 'given up', signal.reason, phase));
  }

  /** Ends the exchange and destroys the socket. @returns what went wrong first */
  function fail(error: unknown): TransportError {
    failure ??= transportError(error, where, phase);
    stopTimers();
    sent?.destroy();
    received?.destroy(failure);
    reject(failure);
    return failure;
  }

  function enter(reason: TransportFailure, ms: number | undefined, what: string): void {
    clearTimeout(phaseTimer);
    phaseTimer = startTimer(reason, ms, what);
  }

  function startTimer(reason: TransportFailure, ms: number | undefined, what: string) {
    if (ms === undefined) return undefined;
    const message = `${what} took longer than ${ms} ms`;
    return setTimeout(() => fail(new TransportError(reason, where, message, undefined, phase)), ms);
  }

  function stopTimers(): void {
    clearTimeout(phaseTimer);
    clearTimeout(total);
    signal.removeEventListener('abort', abort);
  }

  if (signal.aborted) abort();
  else start();
  return {
    response,
    /** Whether the server had closed a kept-alive connection before it could see this request. */
    wasStale: () => request.repeatable && failure?.failure === 'closed' && sent?.reusedSocket === true,
  };
}

function createRequest(request: ExchangeRequest, signal: AbortSignal): ClientRequest {
  const { url, proxy, body } = request;
  const headers: Record<string, string> = { ...request.headers, 'accept-encoding': 'identity' };
  if (body !== undefined) headers['content-length'] = String(Buffer.byteLength(body));
  // `abort` ends a tunnel that is being opened (`connections.ts`).
  const { pool: agent, method } = request;
  const options = { agent, method, maxHeaderSize: maxHeaderBytes, abort: signal };
  if (url.protocol === 'https:') {
    const { serverName: servername } = request;
    return httpsRequest(url, { ...options, headers, ...(servername !== undefined && { servername }) });
  }
  if (!proxy) return httpRequest(url, { ...options, headers });
  // Plain HTTP goes to the proxy itself, with the whole URL in the request line.
  if (proxy.authorization) headers['proxy-authorization'] = reveal(proxy.authorization);
  const send = proxy.url.protocol === 'https:' ? httpsRequest : httpRequest;
  return send(proxy.url, { ...options, path: url.href, headers: { host: url.host, ...headers } });
}

/** Closes the idle connections of a pool. @param url only those to this host and port */
export function closeIdle(pool: Agent, url?: URL): void {
  // Node documents that a name begins with `host:port:` (`agent.getName`).
  const prefix = url === undefined ? '' : `${bareHost(url)}:${portOf(url)}:`;
  for (const [name, sockets] of Object.entries(pool.freeSockets)) {
    if (name.startsWith(prefix)) for (const socket of sockets ?? []) socket.destroy();
  }
}

/** Closes what is idle now, and each other connection when it becomes idle. */
export function retirePool(pool: Agent): void {
  pool.maxFreeSockets = 0;
  closeIdle(pool);
}
