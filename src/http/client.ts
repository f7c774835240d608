/**
 * An HTTP client for servers that this program does not control: each request carries its own TLS settings
 * and reach (`reach.ts`), proxies come from the environment, and the whole body is read under the request's
 * limit in bytes.
 */
import type { Clock } from '../async/clock.ts';
import { readBeginning, readBody, type LargeBody } from './body.ts';
import { createConnections } from './connections.ts';
import { openExchange, type ExchangeRequest, type OpenResponse, type PhaseLimits } from './exchange.ts';
import { proxyFor, ProxyError, type Environment, type Proxy } from './proxy/proxy.ts';
import { checkTarget, type Reach, type Resolve } from './reach/reach.ts';
import { createTrust, type TlsSettings, type Trust } from './tls/trust.ts';
import { TransportError } from './transport-error.ts';

/** The body of a failed response is read only to keep the connection, as far as containerd reads it. */
const maxErrorBodyBytes = 64 * 1024;

/** An endpoint's own `dialTimeoutMs` replaces `dialMs`. */
export type HttpClientLimits = Required<PhaseLimits>;

/** Shorter than containerd's 30 s, 10 s, 30 s and 30 s: a pod waits, and other endpoints follow. */
const defaultLimits: HttpClientLimits = {
  dialMs: 5000,
  tlsMs: 5000,
  headerMs: 15_000,
  idleMs: 10_000,
  totalMs: 30_000,
};

export interface HttpRequest extends Pick<ExchangeRequest, 'url' | 'headers' | 'body'> {
  /** All of these may be repeated: a POST only requests a token. */
  readonly method: 'GET' | 'HEAD' | 'POST';
  readonly maxBytes: number;
  /** What a large body of a successful response waits for. */
  readonly large?: LargeBody | undefined;
  readonly tls: TlsSettings;
  readonly reach: Reach;
  readonly dialTimeoutMs?: number | undefined;
}

export interface HttpResponse extends Pick<OpenResponse, 'status' | 'headers' | 'remoteAddress'> {
  /** Empty unless the status is 2xx. */
  readonly body: Buffer;
}

export type HttpClient = ReturnType<typeof createHttpClient>;

/** @param options `resolve` resolves names; default: the system's resolver */
export function createHttpClient(options: {
  readonly environment: Environment;
  readonly clock: Clock;
  readonly trust?: Trust;
  readonly limits?: Partial<HttpClientLimits> | undefined;
  readonly resolve?: Resolve | undefined;
}) {
  const defaults = { ...defaultLimits, ...options.limits };
  const trust = options.trust ?? createTrust(options);
  const connections = createConnections(options.resolve);

  return {
    /** @throws TransportError */
    send: async (request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> => {
      const { method, url, headers, body, tls, reach } = request;
      const proxy = findProxy(url, options.environment);
      checkTarget(url, reach);
      const limits = { ...defaults, dialMs: request.dialTimeoutMs ?? defaults.dialMs };
      const { idleMs, dialMs } = limits;
      const secure = url.protocol === 'https:';
      const roots = await trust.roots();
      const pool = connections.poolFor({ secure, tls, reach, proxy, roots, idleMs, dialMs });
      const exchange = { method, url, headers, body, pool, proxy, limits, repeatable: true };
      const response = await openExchange(exchange, signal);
      const { status, remoteAddress } = response;
      const isOk = status >= 200 && status < 300;
      const { maxBytes, large } = request;
      const received = isOk
        ? await readBody(response, maxBytes, large)
        : await readBeginning(response, maxErrorBodyBytes).then(() => Buffer.alloc(0));
      return { status, headers: response.headers, remoteAddress, body: received };
    },
    close: (): void => connections.close(),
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

/** Also for `0` and for a date in the past. */
export const minRetryAfterMs = 1000;

/** One header must not stop lookups for longer; after this one request tries again. */
export const maxRetryAfterMs = 15 * 60_000;

/**
 * The pause of `Retry-After` (RFC 9110, section 10.2.3): seconds or a date. Neither is trusted.
 * @param now wall clock, milliseconds
 * @returns milliseconds within the bounds above; undefined if there is no usable value
 */
export function retryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const text = value.trim();
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  // Date.parse accepts `12.5` and `-1`; a date of RFC 9110 always begins with the name of a day.
  if (Number.isNaN(ms) || !/^(\d+$|[A-Z])/i.test(text)) return undefined;
  return Math.min(Math.max(ms, minRetryAfterMs), maxRetryAfterMs);
}

/** Headers that authenticate: they are sent only to the host that they were configured for. */
const loginHeaders: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization', 'cookie']);

/** @param name in any case; white space around it is ignored */
export function isLoginHeader(name: string): boolean {
  return loginHeaders.has(name.trim().toLowerCase());
}
