/**
 * Requests to the API server over keep-alive connections: one pool for watches, one for all other calls.
 * After a 401 the credential is read again at once: the token may have been renewed. A dead connection closes
 * its pool's idle ones too; otherwise each of the next requests would wait for the same timeout.
 */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { createSecureContext } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../async/clock.ts';
import { openExchange, closeIdle, type OpenResponse } from '../../http/exchange.ts';
import { authorizationHeader, type AccessNow, type KubeAccess } from './access.ts';
import { KubeError, connectionError } from './errors.ts';
import { messageOf } from '../../names/printable.ts';

export type Query = Readonly<Record<string, string | number | boolean>>;

export interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Query | undefined;
  /** JSON. */
  readonly body?: string;
  readonly contentType?: string;
  /** Default: `application/json`. */
  readonly accept?: string;
  readonly beforeSend?: (() => void) | undefined;
  /** Silence inside the response that ends it, milliseconds. Absent: only the signal ends it. */
  readonly idleMs?: number;
}

export interface TransportOptions {
  readonly access: KubeAccess;
  readonly userAgent: string;
  /** Limit for the connection, milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** Limit of concurrent calls. A watch has a connection of its own and is not counted. */
const maxSockets = 32;
/** The API server closes idle connections after 90 s (`IdleTimeout` of its `http.Server`). */
const idleConnectionMs = 60_000;
/** After this time without a response, the connection and others of its pool may be dead. */
const usualSuspiciousMs = 2_000;
/** The credential is read again at most this often, however many requests are rejected. */
const renewIntervalMs = 1_000;

/**
 * No object has such a name (apimachinery `IsValidPathSegmentName`), but pods may name such owners and claims,
 * and a URL with it means another path.
 */
const dotSegment = /\/\.{1,2}(?:\/|$)/u;

interface Pools {
  readonly access: AccessNow;
  readonly calls: HttpAgent;
  readonly watches: HttpAgent;
}

/** Connections are opened when first needed. */
export class Transport {
  /** Host and port, for messages. */
  readonly host: string;
  readonly #options: TransportOptions;
  readonly #server: URL;
  readonly #suspiciousMs: number;
  #pools: Pools | undefined;
  #renewedAt = Number.NEGATIVE_INFINITY;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#server = new URL(options.access.server);
    this.host = this.#server.host;
    this.#suspiciousMs = Math.min(usualSuspiciousMs, options.timeoutMs * 0.9);
  }

  /**
   * Sends a request and waits for the header of its response, whatever its status.
   * @throws KubeError if there is no response
   */
  async open(call: Call, signal: AbortSignal): Promise<OpenResponse> {
    const where = `${call.method} ${call.path}`;
    if (dotSegment.test(call.path))
      throw new KubeError('not-found', where, `${where}: no object has this name`);
    const access = await this.#access(where);
    const response = await this.#send(call, access, signal);
    if (response.status !== 401) return response;
    const renewed = await this.#renewedAccess(access, where);
    if (renewed === undefined) return response;
    response.close();
    return await this.#send(call, renewed, signal);
  }

  close(): void {
    this.#pools?.calls.destroy();
    this.#pools?.watches.destroy();
    this.#pools = undefined;
  }

  async #send(call: Call, access: AccessNow, signal: AbortSignal): Promise<OpenResponse> {
    const { clock, timeoutMs, userAgent } = this.#options;
    const { method, body, beforeSend, contentType = 'application/json', accept = 'application/json' } = call;
    const where = `${method} ${call.path}`;
    const pools = this.#poolsFor(access, where);
    const sentAt = clock.monotonic();
    const idleMs = call.idleMs === undefined ? {} : { idleMs: call.idleMs };
    const request = {
      method,
      url: this.#url(call),
      headers: {
        accept,
        'user-agent': userAgent,
        ...(body !== undefined && { 'content-type': contentType }),
        ...authorizationHeader(access),
      },
      body,
      beforeSend,
      pool: call.query?.['watch'] === true ? pools.watches : pools.calls,
      limits: { dialMs: timeoutMs, ...idleMs },
      repeatable: method === 'GET',
    };
    try {
      return await openExchange(request, signal);
    } catch (error) {
      if (clock.monotonic() - sentAt >= this.#suspiciousMs) {
        closeIdle(pools.calls);
        closeIdle(pools.watches);
      }
      throw connectionError(error, where);
    }
  }

  /** A changed certificate needs new connections; a changed token only another header. */
  #poolsFor(access: AccessNow, where: string): Pools {
    if (this.#pools && isDeepStrictEqual(this.#pools.access.tls, access.tls)) return this.#pools;
    this.close();
    try {
      const pool = this.#server.protocol === 'http:' ? plainPool : securePool(access);
      this.#pools = { access, calls: pool(maxSockets), watches: pool(Infinity) };
      return this.#pools;
    } catch (cause) {
      const message = `${where}: the certificates for ${this.host} cannot be used: ${messageOf(cause)}`;
      throw new KubeError('unavailable', where, message, { cause });
    }
  }

  #url({ path, query = {} }: Call): URL {
    const url = new URL(this.#server);
    url.pathname = url.pathname.replace(/\/$/, '') + path;
    url.search = Object.entries(query)
      .map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`)
      .join('&');
    return url;
  }

  async #access(where: string): Promise<AccessNow> {
    try {
      return await this.#options.access.now();
    } catch (cause) {
      const message = `cannot read the credential for ${this.host}: ${messageOf(cause)}`;
      throw new KubeError('unauthorized', where, message, { cause });
    }
  }

  /** A credential other than the rejected one, if there is any. */
  async #renewedAccess(rejected: AccessNow, where: string): Promise<AccessNow | undefined> {
    const at = this.#options.clock.monotonic();
    if (at - this.#renewedAt >= renewIntervalMs) {
      this.#renewedAt = at;
      try {
        this.#options.access.renew?.();
      } catch {
        // A kubeconfig is being written: the previous content stays in force.
      }
    }
    const access = await this.#access(where);
    return sameAccess(access, rejected) ? undefined : access;
  }
}

const poolOptions = { keepAlive: true, maxFreeSockets: maxSockets, timeout: idleConnectionMs };

function plainPool(most: number): HttpAgent {
  return new HttpAgent({ ...poolOptions, maxSockets: most });
}

/** The certificates are parsed once, not for each connection. */
function securePool({ tls }: AccessNow): (most: number) => HttpAgent {
  // As in other Kubernetes clients (Go, crypto/x509): a configured authority need not be a root.
  const secureContext = createSecureContext({ ...tls, allowPartialTrustChain: true });
  return (most) => new HttpsAgent({ ...poolOptions, ...tls, secureContext, maxSockets: most });
}

function sameAccess(a: AccessNow, b: AccessNow): boolean {
  return isDeepStrictEqual([a.tls, authorizationHeader(a)], [b.tls, authorizationHeader(b)]);
}
