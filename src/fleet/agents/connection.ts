/**
 * Connections to agents: mutual TLS over a pool of keep-alive connections, with limits on size and time.
 *
 * Every agent's certificate names `archwright-agent`, and that name is verified whatever address is dialed: addresses of
 * nodes change, and a certificate per address would have to change with them. The cluster's own authority vouches that the peer
 * is an agent of this cluster.
 */
import { Agent } from 'node:https';
import { createSecureContext } from 'node:tls';
import { openExchange, retirePool } from '../../http/exchange.ts';
import { createClientTls, type TlsFiles } from '../../serving/tls-files.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { reveal } from '../../telemetry/secret.ts';
import { agentError, jsonLines, readJson } from './response-body.ts';

/** The name in every agent's certificate (DNS SAN). */
export const agentServerName = 'archwright-agent';

export interface AgentConnection {
  /**
   * Sends one request and reads its JSON.
   * @param url the agent's, `https://host:port`
   * @param body sent as JSON; the method is then POST
   * @throws AgentError
   */
  json(url: string, path: string, call: Call & { readonly body?: unknown }): Promise<unknown>;
  /**
   * The lines of a response as they come.
   * @throws AgentError
   */
  lines(url: string, path: string, call: Call): AsyncIterable<string>;
  close(): Promise<void>;
}

export interface Call {
  readonly signal: AbortSignal;
  /** Limit for the body of the response. */
  readonly maxBytes: number;
}

export interface ConnectionOptions {
  /** Directory with `tls.crt`, `tls.key` and `ca.crt`. */
  readonly tlsDir: string;
  readonly log: Log;
  readonly metrics?: Metrics;
  /** Limit for a connection, TLS included. */
  readonly dialTimeoutMs?: number;
  readonly pollMs?: number;
}

/** Inside a cluster a handshake takes some milliseconds; this forgives one lost packet (RFC 6298: first resend after 1 s). */
const defaultDialTimeoutMs = 2000;
/** Shorter than the 120 s for which an agent keeps an idle connection, so that the agent never closes it first. */
const idleMs = 60_000;
/** Each request to an agent in progress needs one connection, and a new one costs a handshake; further requests wait. */
const maxSockets = 32;
/** After a burst the next one should find its connections; idle ones end after `idleMs`. */
const maxFreeSockets = 16;

/**
 * Opens the client's side of mutual TLS; connections are made when they are needed. A changed certificate is used for new
 * connections; those in use end with their response.
 * @throws ServingError `tls-files` if the files cannot be used
 */
export async function openConnection(options: ConnectionOptions): Promise<AgentConnection> {
  const { log, metrics, pollMs, dialTimeoutMs = defaultDialTimeoutMs } = options;
  const files = await createClientTls(options.tlsDir, {
    log,
    ...(metrics && { metrics }),
    ...(pollMs !== undefined && { pollMs }),
  });
  let pool = createPool(files);
  files.onChange(() => {
    retirePool(pool);
    pool = createPool(files);
  });

  /** Sends a request and waits for the header of its response, whatever the status. */
  async function open(url: string, path: string, json: string | undefined, signal: AbortSignal) {
    const request = {
      method: json === undefined ? 'GET' : 'POST',
      url: new URL(path, url),
      headers: {
        accept: 'application/json',
        ...(json !== undefined && { 'content-type': 'application/json' }),
      },
      body: json,
      pool,
      limits: { dialMs: dialTimeoutMs },
      // The agents' API only reads.
      repeatable: true,
    } as const;
    try {
      return await openExchange(request, signal);
    } catch (error) {
      throw agentError(error, url);
    }
  }

  return {
    json: async (url, path, { body, signal, maxBytes }) => {
      const json = body === undefined ? undefined : JSON.stringify(body);
      return await readJson(await open(url, path, json, signal), url, maxBytes);
    },
    lines: async function* (url, path, { signal, maxBytes }) {
      yield* jsonLines(await open(url, path, undefined, signal), url, maxBytes);
    },
    close: async () => {
      pool.destroy();
      await files.close();
    },
  };
}

function createPool(files: TlsFiles): Agent {
  const { cert, key, ca } = files.current();
  return new Agent({
    keepAlive: true,
    timeout: idleMs,
    maxSockets,
    maxFreeSockets,
    scheduling: 'lifo',
    servername: agentServerName,
    // Made once: otherwise every new connection parses the certificates again, at half the cost of its handshake.
    secureContext: createSecureContext({
      minVersion: 'TLSv1.2',
      cert,
      key: reveal(key),
      ...(ca !== undefined && { ca }),
      // `ca.crt` is an intermediate if its issuer knows no root (cert-manager).
      allowPartialTrustChain: true,
    }),
  });
}
