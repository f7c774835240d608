/**
 * Connections to agents: mutual TLS over a pool of keep-alive connections. An agent's node may be compromised,
 * so answers are bounded in size and time.
 *
 * Certificates name nodes, not addresses, which change. Built-in certificates are one for each node, so no node
 * can answer for another one. Other issuers give all agents one certificate, for `archwright-agent`.
 */
import { Agent } from 'node:https';
import { createSecureContext } from 'node:tls';
import { readBody, readLines } from '../http/body.ts';
import { asObject, parseJson } from '../http/json.ts';
import { openExchange, retirePool, type ExchangeRequest, type OpenResponse } from '../http/exchange.ts';
import { messageWithCause, TransportError } from '../http/transport-error.ts';
import type { TlsMaterial, TlsSource } from '../serving/tls-files.ts';
import { reveal } from '../telemetry/secret.ts';

/** Paths of the agent API, version 1. */
export const agentPaths = { facts: '/v1/facts', info: '/v1/info' } as const;

/** Why an agent gave no answer. */
export const agentErrorCodes = [
  /** No connection, TLS included, a silent agent, or a connection that ends before the answer does. */
  'unreachable',
  /** No answer within the time there was. */
  'timeout',
  /** The agent refuses this client's certificate, is overloaded, or reports that it failed. */
  'failed',
  /** The request is wrong for an agent of this version, or its answer does not conform to the API. */
  'bad-answer',
] as const;
export type AgentErrorCode = (typeof agentErrorCodes)[number];

export class AgentError extends Error {
  override readonly name = 'AgentError';
  readonly code: AgentErrorCode;
  constructor(code: AgentErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export type AgentConnection = ReturnType<typeof createConnection>;

export interface Call {
  readonly signal: AbortSignal;
  /** Sent as JSON; the method is then POST. */
  readonly body?: unknown;
  /** Limit for the body of the response. */
  readonly maxBytes: number;
}

export interface ConnectionOptions {
  /** The client certificate. A controller of a new cluster issues it first. */
  readonly tls: TlsSource;
  readonly limits?: Partial<typeof usualLimits>;
  /** The name that the agent's certificate must have. */
  readonly serverNameOf: (url: string) => string;
}

const usualLimits = {
  /** A handshake takes milliseconds; this allows one lost packet (RFC 6298: first resend after 1 s). */
  dialMs: 2000,
  /** The silence of an agent before its answer. */
  headerMs: 3000,
};
/** Shorter than the agent's 120 s for idle connections, so the agent never closes one first. */
const idleMs = 60_000;
/** One connection per request in progress; a new one costs a handshake. Further requests wait. */
const maxSockets = 40;
/** After a burst the next one should find its connections; idle ones end after `idleMs`. */
const maxFreeSockets = 16;
/** Facts have a few hundred bytes; this is room for an index with every platform there is. */
export const maxLineBytes = 64 * 1024;
/** `{"error": {"code", "message"}}`. */
const maxErrorBytes = 8 * 1024;

/**
 * The client's side of mutual TLS; connections are made when they are needed. A changed certificate is used for
 * new connections; those in use end with their response.
 */
export function createConnection(options: ConnectionOptions) {
  const { tls, serverNameOf } = options;
  const limits = { ...usualLimits, ...options.limits };
  let pool: Agent | undefined;

  function renewPool(): void {
    if (pool) retirePool(pool);
    const material = tls.current();
    pool = material && createPool(material);
  }
  tls.onChange(renewPool);
  renewPool();

  /** @param url `https://host:port` @returns the response with status 200, its body not read yet */
  async function open(url: string, path: string, { body, signal }: Call): Promise<OpenResponse> {
    if (!pool) await tls.ready(signal).catch(() => undefined);
    if (!pool) throw new AgentError('unreachable', `no client certificate for agents: ${tls.problem()}`);
    const request: ExchangeRequest = {
      method: body === undefined ? 'GET' : 'POST',
      url: new URL(path, url),
      headers: { 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
      pool,
      serverName: serverNameOf(url),
      limits,
      // The agents' API only reads.
      repeatable: true,
    };
    const response = await openExchange(request, signal).catch(fail);
    if (response.status !== 200) throw await statusError(response);
    return response;
  }

  return {
    /** @throws AgentError for every status but 200, and for a body that is too large, cut off or not JSON */
    json: async (url: string, path: string, call: Call): Promise<unknown> => {
      const json = await jsonOf(await open(url, path, call), call.maxBytes);
      if (json !== undefined) return json;
      throw new AgentError('bad-answer', 'the agent answered with something that is not JSON');
    },
    /** The non-empty lines of a response as they come. @throws AgentError as `json`, perhaps after some */
    lines: async function* (url: string, path: string, call: Call): AsyncIterable<string> {
      const response = await open(url, path, call);
      try {
        yield* readLines(response, { maxLineBytes, maxBytes: call.maxBytes });
      } catch (cause) {
        fail(cause);
      }
    },
    close: async (): Promise<void> => {
      pool?.destroy();
      await tls.close();
    },
  };
}

function createPool({ cert, key, ca }: TlsMaterial): Agent {
  return new Agent({
    keepAlive: true,
    timeout: idleMs,
    maxSockets,
    maxFreeSockets,
    scheduling: 'lifo',
    // Made once: parsing certificates for each connection would cost half a handshake.
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

/** The value of the body; `undefined` if it is not JSON. */
async function jsonOf(response: OpenResponse, maxBytes: number): Promise<unknown> {
  const body = await readBody(response, maxBytes).catch(fail);
  return parseJson(body.toString('utf8'));
}

/** The error of an answer with another status than 200, with the agent's own description of it. */
async function statusError(response: OpenResponse): Promise<AgentError> {
  const { status } = response;
  const answer = await jsonOf(response, maxErrorBytes);
  const message = asObject(asObject(answer)?.['error'])?.['message'];
  const why = typeof message === 'string' ? `: ${message.slice(0, 300)}` : '';
  return new AgentError(codeOf(status), `the agent answered ${status}${why}`);
}

function codeOf(status: number): AgentErrorCode {
  return [401, 403, 408, 429].includes(status) || status >= 500 ? 'failed' : 'bad-answer';
}

/** @throws AgentError for a failed exchange, and anything else as it is */
function fail(cause: unknown): never {
  if (!(cause instanceof TransportError)) throw cause;
  const { failure, phase, where } = cause;
  const make = (code: AgentErrorCode, message: string) => new AgentError(code, message, { cause });
  if (failure === 'too-large' || failure === 'encoded') throw make('bad-answer', cause.message);
  if (failure === 'aborted') throw make('timeout', `no answer from ${where} in time`);
  if (phase === 'body') throw make('unreachable', 'the connection was lost during the response');
  const isReached = phase !== 'connect' && failure !== 'header-timeout';
  const what = isReached ? `the connection to ${where} was lost` : `${where} cannot be reached`;
  throw make('unreachable', `${what}: ${messageWithCause(cause).slice(0, 300)}`);
}
