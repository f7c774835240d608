/**
 * One HTTP exchange, and nothing of the registry protocol: `node:http(s)` on kept-alive connections, with a limit for
 * each phase (dialing, TLS, header, silence, the whole), a cap on the bytes of the body, and a socket that is closed the
 * moment nobody waits any longer. Redirects are not followed here (`redirect.ts`); a compressed answer is refused, because
 * it can be a thousand times what was counted.
 */
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { reveal } from '../telemetry/secret.ts';
import type { Clock } from '../async/clock.ts';
import { createConnections } from './connections.ts';
import type { TlsSettings } from './tls-settings.ts';
import { proxyFor, ProxyError, type Environment, type Proxy } from './proxy.ts';
import { checkTarget, type Reach, type Resolve } from './reach.ts';
import { TransportError, transportError, type TransportFailure } from './transport-error.ts';
import { createTrust, type Trust } from './trust.ts';

/** Node's own default, written down because a bigger one would be a gift to a hostile server. */
const maxHeaderBytes = 16 * 1024;

/** Bodies of failed answers are read for the connection's sake only, up to what containerd reads of them. */
const maxErrorBodyBytes = 64 * 1024;

/** A kept-alive connection may have been closed by the server at that very moment; more than two in a row is no race. */
const maxStaleRetries = 2;

export interface TransportLimits {
  /** Name resolution and connection; an endpoint's own `dialTimeoutMs` goes before it. */
  readonly dialMs: number;
  readonly tlsMs: number;
  /** From the request sent to the header received. */
  readonly headerMs: number;
  /** Silence inside a body. */
  readonly idleMs: number;
  /** The whole exchange, however steadily it drips. */
  readonly totalMs: number;
}

/** Shorter than containerd's (30 s, 10 s, 30 s, 30 s): a pod waits for the answer, and the next endpoint for its turn. */
export const defaultTransportLimits: TransportLimits = {
  dialMs: 5000,
  tlsMs: 5000,
  headerMs: 15_000,
  idleMs: 10_000,
  totalMs: 30_000,
};

export interface HttpRequest {
  readonly method: 'GET' | 'HEAD' | 'POST';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Cap on the body of a successful answer. */
  readonly maxBytes: number;
  readonly tls: TlsSettings;
  readonly reach: Reach;
  readonly dialTimeoutMs?: number;
}

export interface HttpAnswer {
  readonly status: number;
  /** One text per header line: joined lines could not be told apart. */
  readonly headers: Readonly<Record<string, readonly string[] | undefined>>;
  /** Empty unless the status is 2xx. */
  readonly body: Buffer;
  /** Where it came from; undefined through a proxy. */
  readonly remoteAddress?: string;
}

export interface TransportOptions {
  readonly environment: Environment;
  readonly clock: Clock;
  readonly trust?: Trust;
  readonly limits?: Partial<TransportLimits>;
  /** How names are resolved; by the system where it is left out. */
  readonly resolve?: Resolve;
}

export interface Transport {
  /** @throws TransportError */
  send(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer>;
  close(): void;
}

export function createTransport(options: TransportOptions): Transport {
  const limits = { ...defaultTransportLimits, ...options.limits };
  const trust = options.trust ?? createTrust(options);
  const connections = createConnections(options.resolve);

  async function attempt(request: HttpRequest, signal: AbortSignal, stale: number): Promise<HttpAnswer> {
    const { url } = request;
    const proxy = findProxy(url, options.environment);
    checkTarget(url, request.reach);
    const dialMs = request.dialTimeoutMs ?? limits.dialMs;
    const agent = connections.agentFor({
      secure: url.protocol === 'https:',
      tls: request.tls,
      reach: request.reach,
      ...(proxy ? { proxy } : {}),
      roots: await trust.roots(),
      idleMs: limits.idleMs,
      dialMs,
    });
    if (signal.aborted) throw new TransportError('aborted', url.host, 'given up before it was sent');
    const sent = start(request, { agent, maxHeaderSize: maxHeaderBytes, abort: signal }, proxy);
    const progress: Progress = { proxied: proxy !== undefined, answered: false };
    try {
      return await exchange(sent, request, { ...limits, dialMs }, signal, progress);
    } catch (error) {
      const failed = transportError(error, url.host);
      const raced = failed.failure === 'closed' && sent.reusedSocket && !progress.answered;
      if (raced && stale < maxStaleRetries && !signal.aborted) return attempt(request, signal, stale + 1);
      throw failed;
    }
  }

  return {
    send: (request, signal) => attempt(request, signal, 0),
    close: () => connections.close(),
  };
}

function findProxy(url: URL, environment: Environment): Proxy | undefined {
  try {
    return proxyFor(url, environment);
  } catch (error) {
    if (error instanceof ProxyError) throw new TransportError('proxy', url.host, error.message, error);
    throw error;
  }
}

interface Progress {
  readonly proxied: boolean;
  /** Whether a header came; then the request is not repeated. */
  answered: boolean;
}

function start(
  request: HttpRequest,
  options: RequestOptions & { abort: AbortSignal },
  proxy: Proxy | undefined,
): ClientRequest {
  const { url } = request;
  const headers: Record<string, string> = { ...request.headers, 'accept-encoding': 'identity' };
  if (request.body !== undefined) headers['content-length'] = String(Buffer.byteLength(request.body));
  const common = { ...options, method: request.method };
  try {
    if (!proxy || url.protocol === 'https:') {
      const make = url.protocol === 'https:' ? httpsRequest : httpRequest;
      return make(url, { ...common, headers });
    }
    // Plain HTTP goes to the proxy as it is, with the whole URL in the request line.
    if (proxy.authorization) headers['proxy-authorization'] = reveal(proxy.authorization);
    return httpRequest(proxy.url, { ...common, path: url.href, headers: { host: url.host, ...headers } });
  } catch (error) {
    throw transportError(error, url.host);
  }
}

/** Sends a request and reads its answer under all limits; whatever goes wrong destroys the socket. */
function exchange(
  sent: ClientRequest,
  request: HttpRequest,
  limits: TransportLimits,
  signal: AbortSignal,
  progress: Progress,
): Promise<HttpAnswer> {
  const where = request.url.host;
  return new Promise((resolve, reject) => {
    let phase: NodeJS.Timeout | undefined;
    const fail = (error: unknown): void => {
      finish();
      sent.destroy();
      reject(transportError(error, where));
    };
    const expire = (failure: TransportFailure, ms: number, what: string): NodeJS.Timeout =>
      setTimeout(() => fail(new TransportError(failure, where, `${what} took longer than ${ms} ms`)), ms);
    const enter = (failure: TransportFailure, ms: number, what: string): void => {
      clearTimeout(phase);
      phase = expire(failure, ms, what);
    };
    const whole = expire('total-timeout', limits.totalMs, 'the whole exchange');
    const abort = (): void => fail(new TransportError('aborted', where, 'given up'));
    signal.addEventListener('abort', abort, { once: true });
    function finish(): void {
      clearTimeout(phase);
      clearTimeout(whole);
      signal.removeEventListener('abort', abort);
    }

    const waitForHeader = (): void => enter('header-timeout', limits.headerMs, 'waiting for an answer');
    enter('dial-timeout', limits.dialMs, 'connecting');
    sent.on('socket', (socket) => {
      if (!socket.connecting) return waitForHeader();
      socket.once('connect', () => {
        if (request.url.protocol !== 'https:' || progress.proxied) return waitForHeader();
        enter('tls-timeout', limits.tlsMs, 'the TLS handshake');
        socket.once('secureConnect', waitForHeader);
      });
    });
    sent.on('error', fail);
    sent.on('response', (response) => {
      progress.answered = true;
      const remoteAddress = progress.proxied ? undefined : response.socket.remoteAddress;
      const idle = (): void => enter('idle-timeout', limits.idleMs, 'a silence inside the answer');
      idle();
      readBody(response, request, idle).then((body) => {
        finish();
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headersDistinct,
          body,
          ...(remoteAddress === undefined ? {} : { remoteAddress }),
        });
      }, fail);
    });
    sent.end(request.body);
  });
}

async function readBody(
  response: IncomingMessage,
  request: HttpRequest,
  progress: () => void,
): Promise<Buffer> {
  const where = request.url.host;
  const status = response.statusCode ?? 0;
  const wanted = status >= 200 && status < 300;
  const encoding = response.headers['content-encoding'];
  if (wanted && encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new TransportError('encoded', where, 'the answer is compressed although that was not accepted');
  }
  const cap = wanted ? request.maxBytes : maxErrorBodyBytes;
  const tooLarge = (): TransportError =>
    new TransportError('too-large', where, `the answer is larger than ${cap} bytes`);
  if (wanted && request.method !== 'HEAD' && Number(response.headers['content-length'] ?? 0) > cap) {
    throw tooLarge();
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    progress();
    size += chunk.length;
    if (wanted) chunks.push(chunk);
    if (size <= cap) continue;
    if (wanted) throw tooLarge();
    // Leaving the loop destroys the connection; the status alone says enough.
    break;
  }
  return Buffer.concat(chunks);
}
