/**
 * Connections to agents: mutual TLS over a pool of keep-alive connections, with limits on size and time: an
 * agent is part of this program, but its node may be compromised.
 *
 * Names are verified, not addresses: addresses of nodes change, and certificates would have to change with
 * them. With built-in certificates each agent has its own, for the name of its node, so no node can answer
 * for another one. Other issuers give all agents one certificate, for `archwright-agent`.
 */
import { Agent } from 'node:https';
import { createSecureContext } from 'node:tls';
import { readBody, readLines } from '../http/body.ts';
import { asObject, parseJson } from '../http/json.ts';
import { openExchange, retirePool, type OpenResponse } from '../http/exchange.ts';
import { messageWithCause, TransportError } from '../http/transport-error.ts';
import { messageOf } from '../names/printable.ts';
import { openTlsFiles, type TlsFiles, type TlsFilesOptions } from '../serving/tls-files.ts';
import { reveal } from '../telemetry/secret.ts';
import { agentServerName } from './identity.ts';

/**
 * Why an agent gave no answer:
 * - `unreachable`: no connection: nothing listens, no route, no TLS, or none in time
 * - `lost`: the connection ended before the answer did
 * - `timeout`: no answer within the time there was
 * - `refused`: the agent does not answer this client's certificate
 * - `overloaded`: the agent is overloaded, or reports that it failed
 * - `rejected`: the request is wrong; another agent would reject it too
 * - `bad-answer`: the answer is too large, or does not conform to the API
 */
export const agentErrorCodes = [
  'unreachable',
  'lost',
  'timeout',
  'refused',
  'overloaded',
  'rejected',
  'bad-answer',
] as const;
export type AgentErrorCode = (typeof agentErrorCodes)[number];

export class AgentError extends Error {
  override readonly name = 'AgentError';
  readonly code: AgentErrorCode;
  /** Whether another agent, or this one later, may answer. */
  readonly temporary: boolean;
  /** URL of the agent. */
  readonly where: string;
  constructor(code: AgentErrorCode, where: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.temporary = code !== 'rejected';
    this.where = where;
  }
}

export interface AgentConnection {
  /**
   * Sends one request and reads its JSON.
   * @param url the agent's, `https://host:port`
   * @throws AgentError for every status but 200, and for a body that is too large, cut off or not JSON
   */
  json(url: string, path: string, call: Call): Promise<unknown>;
  /** The non-empty lines of a response as they come. @throws AgentError as `json`, perhaps after some */
  lines(url: string, path: string, call: Call): AsyncIterable<string>;
  close(): Promise<void>;
}

export interface Call {
  readonly signal: AbortSignal;
  /** Sent as JSON; the method is then POST. */
  readonly body?: unknown;
  /** Called when the agent begins to answer: it is alive, whatever comes next. */
  readonly onResponse?: () => void;
  /** Limit for the body of the response. */
  readonly maxBytes: number;
}

export interface ConnectionOptions extends Omit<TlsFilesOptions, 'use' | 'ca'> {
  /** The certificate may appear later: the first controller of a new cluster issues it. */
  readonly mayWait?: boolean;
  /** Limit for a connection, TLS included. */
  readonly dialTimeoutMs?: number;
  /** The name that the agent's certificate must have. Default: `archwright-agent` for every agent. */
  readonly serverNameOf?: (url: string) => string;
}

/** A handshake takes milliseconds; this allows one lost packet (RFC 6298: first resend after 1 s). */
const defaultDialTimeoutMs = 2000;
/** Shorter than the agent's 120 s for idle connections, so the agent never closes one first. */
const idleMs = 60_000;
/** One connection per request in progress; a new one costs a handshake. Further requests wait. */
const maxSockets = 32;
/** After a burst the next one should find its connections; idle ones end after `idleMs`. */
const maxFreeSockets = 16;
/** Facts have a few hundred bytes; this is room for an index with every platform there is. */
export const maxLineBytes = 64 * 1024;
/** `{"error": {"code", "message"}}`. */
const maxErrorBytes = 8 * 1024;

/**
 * Opens the client's side of mutual TLS; connections are made when they are needed. A changed certificate is
 * used for new connections; those in use end with their response.
 * @throws ServingError `tls-files` if the files cannot be used, unless they may appear later
 */
export async function openConnection(options: ConnectionOptions): Promise<AgentConnection> {
  const { dialTimeoutMs = defaultDialTimeoutMs, serverNameOf = () => agentServerName, log } = options;
  let opened: ReturnType<typeof openPool> | undefined;
  let problem = '';
  if (options.mayWait !== true) await (opened = openPool(options));

  async function poolFor(url: string): Promise<Agent> {
    try {
      return (await (opened ??= openPool(options))).current();
    } catch (error) {
      opened = undefined;
      if (problem !== messageOf(error))
        log.info(
          { problem: messageOf(error) },
          'agents cannot be queried until the controller writes a certificate',
        );
      problem = messageOf(error);
      throw new AgentError('unreachable', url, 'there is no client certificate for agents yet');
    }
  }

  /** Sends a request. @returns the response with status 200, its body not read yet */
  async function open(url: string, path: string, { body, signal, onResponse }: Call) {
    const json = body === undefined ? undefined : JSON.stringify(body);
    const request = {
      method: json === undefined ? 'GET' : 'POST',
      url: new URL(path, url),
      headers: {
        accept: 'application/json',
        ...(json !== undefined && { 'content-type': 'application/json' }),
      },
      body: json,
      pool: await poolFor(url),
      serverName: serverNameOf(url),
      limits: { dialMs: dialTimeoutMs },
      // The agents' API only reads.
      repeatable: true,
    } as const;
    const response = await openExchange(request, signal).catch((error: unknown) => {
      throw agentError(error, url);
    });
    if (response.status !== 200) throw await statusError(response, url);
    onResponse?.();
    return response;
  }

  return {
    json: async (url, path, call) => {
      const json = parseJson(await readText(await open(url, path, call), url, call.maxBytes));
      if (json !== undefined) return json;
      throw new AgentError('bad-answer', url, 'the agent answered with something that is not JSON');
    },
    lines: async function* (url, path, call) {
      const response = await open(url, path, call);
      try {
        yield* readLines(response, { maxLineBytes, maxBytes: call.maxBytes });
      } catch (cause) {
        throw agentError(cause, url);
      }
    },
    close: async () => {
      const closing = opened;
      await (await closing?.catch(() => undefined))?.close();
    },
  };
}

/** A pool that follows the certificate. */
async function openPool(options: ConnectionOptions) {
  const files = await openTlsFiles({ ...options, use: 'client', ca: true });
  let pool = createPool(files);
  files.onChange(() => {
    retirePool(pool);
    pool = createPool(files);
  });
  const close = (): Promise<void> => {
    pool.destroy();
    return files.close();
  };
  return { current: () => pool, close };
}

function createPool(files: TlsFiles): Agent {
  const { cert, key, ca } = files.current();
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

/** Maps a failed exchange. */
function agentError(cause: unknown, url: string): unknown {
  if (!(cause instanceof TransportError)) return cause;
  const { failure, phase, where } = cause;
  const make = (code: AgentErrorCode, message: string) => new AgentError(code, url, message, { cause });
  if (failure === 'too-large' || failure === 'encoded') return make('bad-answer', cause.message);
  if (failure === 'aborted') {
    const isBody = phase === 'body';
    return make(
      'timeout',
      isBody ? 'the response was not complete in time' : `no response from ${where} in time`,
    );
  }
  if (phase === 'body') return make('lost', 'the connection was lost within the response');
  const reason = messageWithCause(cause).slice(0, 300);
  return phase === 'header'
    ? make('lost', `the connection to ${where} was lost: ${reason}`)
    : make('unreachable', `${where} cannot be reached: ${reason}`);
}

async function statusError(response: OpenResponse, url: string): Promise<AgentError> {
  const { status } = response;
  // The agent's own description of its error.
  const answer = parseJson(await readText(response, url, maxErrorBytes));
  const message = asObject(asObject(answer)?.['error'])?.['message'];
  const why = typeof message === 'string' ? `: ${message.slice(0, 300)}` : '';
  return new AgentError(codeOf(status), url, `the agent answered ${status}${why}`);
}

function codeOf(status: number): AgentErrorCode {
  if (status === 401 || status === 403) return 'refused';
  if (status === 408 || status === 429 || status >= 500) return 'overloaded';
  return status >= 400 ? 'rejected' : 'bad-answer';
}

async function readText(response: OpenResponse, url: string, maxBytes: number): Promise<string> {
  try {
    return (await readBody(response, maxBytes)).toString('utf8');
  } catch (cause) {
    throw agentError(cause, url);
  }
}
