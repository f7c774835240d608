/**
 * Connections to agents: mutual TLS over a pool of keep-alive connections, with limits on size and time.
 *
 * Every agent's certificate names `archwright-agent`, and that name is verified whatever address is dialed: addresses of
 * nodes change, and a certificate per address would have to change with them. What matters is that the peer is an agent of this
 * cluster, which the cluster's own authority vouches for.
 */
import { Agent, request, type RequestOptions } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { createSecureContext, type TLSSocket } from 'node:tls';
import { createClientTls, type TlsFiles } from '../../serving/tls-files.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { reveal } from '../../telemetry/secret.ts';
import { AgentError } from './agent-error.ts';
import { bodyOf, linesOf } from './response-body.ts';

/** The name in every agent's certificate (DNS SAN). */
export const agentServerName = 'archwright-agent';

export interface AgentConnection {
  /**
   * Sends one request and reads its JSON.
   * @param url the agent's, `https://host:port`
   * @param body sent as JSON where there is one; the method is then POST
   * @throws AgentError
   */
  json(url: string, path: string, call: Call & { readonly body?: unknown }): Promise<unknown>;
  /**
   * The lines of an answer that is read as it comes.
   * @throws AgentError
   */
  lines(url: string, path: string, call: Call): AsyncIterable<string>;
  close(): Promise<void>;
}

export interface Call {
  readonly signal: AbortSignal;
  /** The answer may have this many bytes. */
  readonly maxBytes: number;
}

export interface ConnectionOptions {
  /** Directory with `tls.crt`, `tls.key` and `ca.crt`. */
  readonly tlsDir: string;
  readonly log: Log;
  readonly metrics?: Metrics;
  /** A connection must be there by then, TLS included. */
  readonly dialTimeoutMs?: number;
  readonly pollMs?: number;
}

/** Inside a cluster a handshake takes some milliseconds; this forgives one lost packet (RFC 6298: first resend after 1 s). */
const defaultDialTimeoutMs = 2000;
/** Shorter than the 120 s for which an agent keeps an idle connection, so that it is never the agent who closes it. */
const idleMs = 60_000;
/** Each question under way to an agent needs one connection, and a new one costs a handshake; what is beyond waits. */
const maxSockets = 32;
/** After a burst the next one should find its connections; idle ones end after `idleMs`. */
const maxFreeSockets = 16;

/**
 * Opens the client's side of mutual TLS; connections are made when they are needed. A changed certificate is used for new
 * connections, those in use end with their answer.
 * @throws ServingError `tls-files` where the files cannot be used
 */
export async function openConnection(options: ConnectionOptions): Promise<AgentConnection> {
  const { log, metrics, pollMs } = options;
  const dialTimeoutMs = options.dialTimeoutMs ?? defaultDialTimeoutMs;
  const files = await createClientTls(options.tlsDir, {
    log,
    ...(metrics && { metrics }),
    ...(pollMs !== undefined && { pollMs }),
  });
  let pool = createPool(files);
  files.onChange(() => {
    retire(pool);
    pool = createPool(files);
  });

  /** Sends a request and resolves with the head of its answer, whatever its status. */
  function send(url: string, path: string, body: string | undefined, signal: AbortSignal) {
    const target = new URL(url);
    const settings: RequestOptions = {
      agent: pool,
      method: body === undefined ? 'GET' : 'POST',
      host: target.hostname.replace(/^\[|\]$/g, ''),
      port: target.port === '' ? 443 : target.port,
      path,
      servername: agentServerName,
      headers: {
        accept: 'application/json',
        ...(body !== undefined && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        }),
      },
      signal,
    };
    return new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request(settings, resolve);
      let connected = false;
      let dial: NodeJS.Timeout | undefined;
      sent.on('socket', (socket: TLSSocket) => {
        connected = sent.reusedSocket;
        if (connected) return;
        dial = setTimeout(() => {
          const message = `no connection to ${target.host} within ${dialTimeoutMs} ms`;
          sent.destroy(new AgentError('unreachable', url, message));
        }, dialTimeoutMs);
        socket.once('secureConnect', () => {
          connected = true;
          clearTimeout(dial);
        });
      });
      sent.on('error', (error) => {
        clearTimeout(dial);
        reject(new SendError(failure(error, url, connected, signal), sent.reusedSocket && !signal.aborted));
      });
      sent.end(body);
    });
  }

  async function open(url: string, path: string, body: string | undefined, signal: AbortSignal) {
    try {
      return await send(url, path, body, signal).catch((error: unknown) => {
        // The agent may have closed an idle connection in the very moment it was used again. Questions change
        // nothing, so they may be sent twice.
        if (error instanceof SendError && error.reused) return send(url, path, body, signal);
        throw error;
      });
    } catch (error) {
      throw error instanceof SendError ? error.reason : error;
    }
  }

  return {
    json: async (url, path, { body, signal, maxBytes }) => {
      const answer = await open(url, path, body === undefined ? undefined : JSON.stringify(body), signal);
      return await bodyOf(answer, url, maxBytes, signal);
    },
    lines: async function* (url, path, { signal, maxBytes }) {
      const answer = await open(url, path, undefined, signal);
      yield* linesOf(answer, url, maxBytes, signal);
    },
    close: async () => {
      pool.destroy();
      await files.close();
    },
  };
}

/** Carries whether the connection had been used before, which decides on a second try. */
class SendError extends Error {
  readonly reason: AgentError;
  readonly reused: boolean;
  constructor(reason: AgentError, reused: boolean) {
    super(reason.message);
    this.reason = reason;
    this.reused = reused;
  }
}

function createPool(files: TlsFiles): Agent {
  const { cert, key, ca } = files.current();
  return new Agent({
    keepAlive: true,
    timeout: idleMs,
    maxSockets,
    maxFreeSockets,
    scheduling: 'lifo',
    // Made once: otherwise every new connection parses the certificates again, at half the cost of its handshake.
    secureContext: createSecureContext({
      minVersion: 'TLSv1.2',
      cert,
      key: reveal(key),
      ...(ca !== undefined && { ca }),
      // `ca.crt` is an intermediate where whoever issued it knows no root (cert-manager).
      allowPartialTrustChain: true,
    }),
  });
}

/** Closes what is idle; a connection in use is closed when it becomes idle. */
function retire(pool: Agent): void {
  pool.maxFreeSockets = 0;
  for (const sockets of Object.values(pool.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}

function failure(error: Error, url: string, connected: boolean, signal: AbortSignal): AgentError {
  if (error instanceof AgentError) return error;
  const host = new URL(url).host;
  if (signal.aborted) {
    return new AgentError('timeout', url, `no answer from ${host} in time`, { cause: error });
  }
  const reason = error.message.slice(0, 200);
  return connected
    ? new AgentError('lost', url, `the connection to ${host} was lost: ${reason}`, { cause: error })
    : new AgentError('unreachable', url, `${host} cannot be reached: ${reason}`, { cause: error });
}
