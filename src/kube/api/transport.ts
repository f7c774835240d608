/**
 * Requests to the API server over a pool of keep-alive connections, those of watches apart from the others, with what proves who we are. Proof that the server
 * does not take (401) is read again at once, because a token may have been renewed a moment ago. A connection that turns
 * out to be dead takes the idle ones of the pool with it, so that the next requests do not each wait for the same silence.
 */
import { Agent as PlainAgent, request as plainRequest, type IncomingMessage } from 'node:http';
import { Agent, request, type RequestOptions } from 'node:https';
import type { Clock } from '../../async/clock.ts';
import { authorizationHeader, sameConnection, type AccessNow, type KubeAccess } from './access.ts';
import { connectionError, textOf } from './response.ts';
import { KubeError } from './errors.ts';

export type Query = Readonly<Record<string, string | number | boolean>>;

export interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Query | undefined;
  /** JSON. */
  readonly body?: string;
  readonly contentType?: string;
}

export interface Transport {
  /** Host and port, for messages. */
  readonly host: string;
  /**
   * Sends a request and waits for the head of its answer, whatever its status.
   * @throws KubeError where there is no answer
   */
  open(call: Call, signal: AbortSignal): Promise<IncomingMessage>;
  close(): void;
}

export interface TransportOptions {
  readonly access: KubeAccess;
  readonly userAgent: string;
  /** Limit for the head of an answer, milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** More calls at once the server would not like. Watches take one connection each for good, and are not counted. */
const maxSockets = 32;
/** The API server closes idle connections after 90 s (its `http.Server` has that `IdleTimeout`): we do it before. */
const idleConnectionMs = 60_000;
/** A request that was given up after so long without an answer says that its connection may be dead, and others with it. */
const usualSuspiciousMs = 2_000;
/** Proof is read again at most so often, however many requests are refused. */
const renewIntervalMs = 1_000;

interface Pool {
  readonly access: AccessNow;
  readonly calls: Agent | PlainAgent;
  readonly watches: Agent | PlainAgent;
}

/** Makes a pool. Connections are opened when first needed. */
export function createTransport(options: TransportOptions): Transport {
  const { access, clock } = options;
  const server = new URL(access.server);
  const isPlain = server.protocol === 'http:';
  let pool: Pool | undefined;
  const suspiciousMs = Math.min(usualSuspiciousMs, options.timeoutMs * 0.9);
  let renewedAt = Number.NEGATIVE_INFINITY;

  /** A changed certificate needs new connections; a changed token only another header. */
  function poolFor(now: AccessNow): Pool {
    if (pool && sameConnection(pool.access, now)) return pool;
    closePool();
    const agentOf = (most: number): Agent | PlainAgent => {
      const limits = {
        keepAlive: true,
        maxSockets: most,
        maxFreeSockets: maxSockets,
        timeout: idleConnectionMs,
      };
      // As other clients of Kubernetes do (Go, crypto/x509): the authority that is configured need not be a root.
      return isPlain
        ? new PlainAgent(limits)
        : new Agent({ ...limits, ...now.tls, allowPartialTrustChain: true });
    };
    pool = { access: now, calls: agentOf(maxSockets), watches: agentOf(Infinity) };
    return pool;
  }

  function closePool(): void {
    pool?.calls.destroy();
    pool?.watches.destroy();
    pool = undefined;
  }

  async function proof(where: string): Promise<AccessNow> {
    try {
      return await access.now();
    } catch (cause) {
      const message = `cannot prove who we are to ${server.host}: ${textOf(cause)}`;
      throw new KubeError('unauthorized', where, message, { cause });
    }
  }

  function requestOptions(call: Call, now: AccessNow, signal: AbortSignal): RequestOptions {
    const { method, path, query, body, contentType = 'application/json' } = call;
    const { calls, watches } = poolFor(now);
    return {
      method,
      host: server.hostname.replace(/^\[|\]$/g, ''),
      port: server.port === '' ? (isPlain ? 80 : 443) : server.port,
      path: server.pathname.replace(/\/$/, '') + path + queryText(query),
      agent: query?.['watch'] === true ? watches : calls,
      headers: {
        accept: 'application/json',
        'accept-encoding': 'identity',
        'user-agent': options.userAgent,
        ...(body !== undefined && {
          'content-type': contentType,
          'content-length': Buffer.byteLength(body),
        }),
        ...authorizationHeader(now),
      },
      signal,
    };
  }

  function attempt(call: Call, now: AccessNow, signal: AbortSignal, retry = true): Promise<IncomingMessage> {
    const where = `${call.method} ${call.path}`;
    if (signal.aborted) return Promise.reject(connectionError(signal.reason, where, server.host, signal));
    return new Promise((resolve, reject) => {
      const sent = (isPlain ? plainRequest : request)(requestOptions(call, now, signal), (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      const sentAt = clock.monotonic();
      const timer = setTimeout(() => {
        const message = `${where}: no answer from ${server.host} within ${options.timeoutMs} ms`;
        sent.destroy(new KubeError('timeout', where, message));
      }, options.timeoutMs);
      sent.on('error', (cause: NodeJS.ErrnoException) => {
        clearTimeout(timer);
        if (clock.monotonic() - sentAt >= suspiciousMs) dropIdle();
        // The server closed an idle connection in the moment that we used it: only what changes nothing is sent twice.
        const isStale = sent.reusedSocket && (cause.code === 'ECONNRESET' || cause.code === 'EPIPE');
        if (isStale && retry && call.method === 'GET' && !signal.aborted) {
          dropIdle();
          resolve(attempt(call, now, signal, false));
        } else reject(connectionError(cause, where, server.host, signal));
      });
      sent.end(call.body);
    });
  }

  function dropIdle(): void {
    const free = [pool?.calls, pool?.watches].flatMap((agent) => Object.values(agent?.freeSockets ?? {}));
    for (const socket of free.flatMap((sockets) => sockets ?? [])) socket.destroy();
  }

  /** Other proof than the one that was refused, where there is any. */
  async function otherProof(refused: AccessNow, where: string): Promise<AccessNow | undefined> {
    const at = clock.monotonic();
    if (at - renewedAt >= renewIntervalMs) {
      renewedAt = at;
      try {
        access.renew?.();
      } catch {
        // A kubeconfig that is being written: what was read before stands.
      }
    }
    const now = await proof(where);
    return sameProof(now, refused) ? undefined : now;
  }

  return {
    host: server.host,
    open: async (call, signal) => {
      const where = `${call.method} ${call.path}`;
      const now = await proof(where);
      const answer = await attempt(call, now, signal);
      if (answer.statusCode !== 401) return answer;
      const other = await otherProof(now, where);
      if (other === undefined) return answer;
      answer.destroy();
      return await attempt(call, other, signal);
    },
    close: closePool,
  };
}

function sameProof(a: AccessNow, b: AccessNow): boolean {
  return (
    a === b ||
    (sameConnection(a, b) &&
      authorizationHeader(a)['authorization'] === authorizationHeader(b)['authorization'])
  );
}

function queryText(query: Query | undefined): string {
  if (query === undefined) return '';
  const parts = Object.entries(query).map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`);
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}
