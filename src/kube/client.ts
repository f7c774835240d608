/**
 * A client of the Kubernetes API that holds on: raw JSON over one pool of keep-alive connections. It knows nothing of
 * kinds; paths are API paths such as `/api/v1/nodes`. Lists come in pages, watches as lines; `reflector.ts` makes a
 * cache of both. Nothing is read without a byte limit and a time limit.
 */
import { Agent, request, type RequestOptions } from 'node:https';
import { request as plainRequest, Agent as PlainAgent, type IncomingMessage } from 'node:http';
import { authorizationHeader, sameConnection, type AccessNow, type KubeAccess } from './access.ts';
import { errorOfAnswer, KubeError } from './errors.ts';

export interface KubeClient {
  /**
   * One object, or one page of a list.
   * @throws KubeError
   */
  get<T>(path: string, options: { readonly signal: AbortSignal; readonly query?: Query }): Promise<T>;
  /**
   * Creates an object, or asks for what is asked for by creating one, such as a token.
   * @returns what the server made of it
   * @throws KubeError
   */
  create<T>(path: string, object: object, options: WriteOptions): Promise<T>;
  /**
   * Changes an object: never by writing back what was read. A merge patch with `metadata.resourceVersion`, or a JSON patch
   * that replaces it, is refused with `conflict` where the object changed meanwhile. `apply` is server-side apply and needs
   * a field manager.
   * @throws KubeError
   */
  patch<T>(path: string, patch: Patch, options: WriteOptions): Promise<T>;
  /**
   * Deletes one object.
   * @throws KubeError, `conflict` where a precondition does not hold
   */
  delete(path: string, options: DeleteOptions): Promise<void>;
  /**
   * An answer that is plain text, such as the end of a container's log. What is longer than `maxBytes` is cut off.
   * @throws KubeError
   */
  text(
    path: string,
    options: { readonly signal: AbortSignal; readonly query?: Query; readonly maxBytes: number },
  ): Promise<string>;
  /**
   * The lines of an answer that stays open, for watches. Ends when the server ends it.
   * @throws KubeError, also `timeout` when nothing comes for `idleMs`
   */
  lines(
    path: string,
    options: { readonly signal: AbortSignal; readonly query?: Query; readonly idleMs: number },
  ): AsyncIterable<string>;
  close(): void;
}

export type Query = Readonly<Record<string, string | number | boolean>>;

export interface WriteOptions {
  readonly signal: AbortSignal;
  readonly query?: Query;
}

/** A JSON patch (RFC 6902), a merge patch (RFC 7386), a strategic merge patch, or an object to apply on the server side. */
export type Patch =
  | { readonly type: 'json'; readonly body: readonly object[] }
  | { readonly type: 'merge' | 'strategic'; readonly body: object }
  | {
      readonly type: 'apply';
      readonly body: object;
      readonly fieldManager: string;
      readonly force?: boolean;
    };

export interface DeleteOptions extends WriteOptions {
  /** Only this very object. */
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
}

/** https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply */
const patchTypes: Readonly<Record<Patch['type'], string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  // JSON is YAML.
  apply: 'application/apply-patch+yaml',
};

interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Query | undefined;
  /** JSON. */
  readonly body?: string;
  readonly contentType?: string;
}

export interface KubeClientOptions {
  readonly access: KubeAccess;
  readonly userAgent: string;
  /** Limit for one answer, milliseconds. */
  readonly timeoutMs?: number;
}

/** A page of 500 pods of 20 KB each is 10 MB; this leaves room for large objects (1.5 MiB is etcd's own limit). */
const maxAnswer = 64 * 1024 * 1024;
/** One object, with room for what the server adds to it. */
const maxCreated = 4 * 1024 * 1024;
/** Two objects of etcd's limit and the event around them. */
const maxLine = 4 * 1024 * 1024;
/** An error's `Status` is short; what is longer is no message for people. */
const maxErrorBody = 64 * 1024;
/** The API server answers GETs by name in milliseconds; a page of a large list takes seconds. */
const defaultTimeoutMs = 30_000;

/** Makes a client. Connections are opened when first needed and closed by `close`. */
export function createKubeClient(options: KubeClientOptions): KubeClient {
  const server = new URL(options.access.server);
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  let pool: { readonly access: AccessNow; readonly agent: Agent | PlainAgent } | undefined;

  /** A changed certificate needs new connections; a changed token only another header. */
  function agentFor(access: AccessNow): Agent | PlainAgent {
    if (pool && sameConnection(pool.access, access)) return pool.agent;
    pool?.agent.destroy();
    const limits = { keepAlive: true, maxSockets: 32, maxFreeSockets: 4 };
    const agent =
      server.protocol === 'http:' ? new PlainAgent(limits) : new Agent({ ...limits, ...access.tls });
    pool = { access, agent };
    return agent;
  }

  async function open(
    { method, path, query, body, contentType = 'application/json' }: Call,
    signal: AbortSignal,
    headerTimeoutMs: number,
  ): Promise<IncomingMessage> {
    const where = `${method} ${path}`;
    const access = await options.access.now().catch((cause: unknown) => {
      throw new KubeError(
        'unauthorized',
        where,
        `cannot prove who we are to ${server.host}: ${textOf(cause)}`,
        { cause },
      );
    });
    signal.throwIfAborted();
    const requestOptions: RequestOptions = {
      method,
      host: server.hostname.replace(/^\[|\]$/g, ''),
      port: server.port === '' ? (server.protocol === 'http:' ? 80 : 443) : server.port,
      path: server.pathname.replace(/\/$/, '') + path + queryText(query),
      agent: agentFor(access),
      headers: {
        accept: 'application/json',
        'accept-encoding': 'identity',
        'user-agent': options.userAgent,
        ...(body !== undefined && {
          'content-type': contentType,
          'content-length': Buffer.byteLength(body),
        }),
        ...authorizationHeader(access),
      },
      signal,
    };
    return await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = (server.protocol === 'http:' ? plainRequest : request)(requestOptions, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      const timer = setTimeout(() => {
        sent.destroy(
          new KubeError(
            'timeout',
            where,
            `${where}: no answer from ${server.host} within ${headerTimeoutMs} ms`,
          ),
        );
      }, headerTimeoutMs);
      sent.on('error', (cause) => {
        clearTimeout(timer);
        reject(connectionError(cause, where, server.host, signal));
      });
      sent.end(body);
    });
  }

  async function send<T>(call: Call, asker: AbortSignal, maxBytes: number): Promise<T> {
    const where = `${call.method} ${call.path}`;
    const signal = AbortSignal.any([asker, AbortSignal.timeout(timeoutMs)]);
    const answer = await open(call, signal, timeoutMs);
    const status = answer.statusCode ?? 0;
    // 201: created, also by an apply; 202: a deletion that goes on.
    const isSuccess =
      status === 200 ||
      (status === 201 && (call.method === 'POST' || call.method === 'PATCH')) ||
      (status === 202 && call.method === 'DELETE');
    const body = await readAll(answer, isSuccess ? maxBytes : maxErrorBody, where, server.host, signal);
    if (!isSuccess) throw errorOfAnswer(status, body, where, answer.headers['retry-after']);
    try {
      return JSON.parse(body) as T;
    } catch (cause) {
      throw new KubeError(
        'bad-answer',
        where,
        `${where}: ${server.host} answered with something that is not JSON`,
        { cause },
      );
    }
  }

  async function text(
    path: string,
    {
      signal: asker,
      query,
      maxBytes,
    }: { readonly signal: AbortSignal; readonly query?: Query; readonly maxBytes: number },
  ): Promise<string> {
    const where = `GET ${path}`;
    const signal = AbortSignal.any([asker, AbortSignal.timeout(timeoutMs)]);
    const answer = await open({ method: 'GET', path, query }, signal, timeoutMs);
    const status = answer.statusCode ?? 0;
    if (status !== 200) {
      const body = await readAll(answer, maxErrorBody, where, server.host, signal);
      throw errorOfAnswer(status, body, where, answer.headers['retry-after']);
    }
    const chunks: Buffer[] = [];
    let length = 0;
    try {
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        chunks.push(chunk);
        length += chunk.length;
        if (length >= maxBytes) break;
      }
    } catch (cause) {
      throw connectionError(cause, where, server.host, signal);
    } finally {
      answer.destroy();
    }
    return Buffer.concat(chunks).subarray(0, maxBytes).toString('utf8');
  }

  async function* lines(
    path: string,
    call: { readonly signal: AbortSignal; readonly query?: Query; readonly idleMs: number },
  ): AsyncIterable<string> {
    const where = `GET ${path}`;
    const answer = await open({ method: 'GET', path, query: call.query }, call.signal, timeoutMs);
    try {
      const status = answer.statusCode ?? 0;
      if (status !== 200) {
        const body = await readAll(answer, maxErrorBody, where, server.host, call.signal);
        throw errorOfAnswer(status, body, where, answer.headers['retry-after']);
      }
      answer.setTimeout(call.idleMs, () => {
        answer.destroy(new KubeError('timeout', where, `${where}: nothing came for ${call.idleMs} ms`));
      });
      yield* splitLines(answer, where);
    } catch (cause) {
      throw connectionError(cause, where, server.host, call.signal);
    } finally {
      answer.destroy();
    }
  }

  return {
    get: (path, { signal, query }) => send({ method: 'GET', path, query }, signal, maxAnswer),
    create: (path, object, { signal, query }) =>
      send({ method: 'POST', path, query, body: JSON.stringify(object) }, signal, maxCreated),
    patch: (path, patch, { signal, query }) => {
      const manager =
        patch.type === 'apply' ? { fieldManager: patch.fieldManager, force: patch.force ?? false } : {};
      const body = JSON.stringify(patch.body);
      const contentType = patchTypes[patch.type];
      return send(
        { method: 'PATCH', path, query: { ...manager, ...query }, body, contentType },
        signal,
        maxCreated,
      );
    },
    delete: async (path, { signal, query, uid, resourceVersion, propagationPolicy }) => {
      const preconditions = {
        ...(uid !== undefined && { uid }),
        ...(resourceVersion !== undefined && { resourceVersion }),
      };
      const body = JSON.stringify({
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        ...(Object.keys(preconditions).length > 0 && { preconditions }),
        ...(propagationPolicy !== undefined && { propagationPolicy }),
      });
      await send<unknown>({ method: 'DELETE', path, query, body }, signal, maxCreated);
    },
    text,
    lines,
    close: () => {
      pool?.agent.destroy();
      pool = undefined;
    },
  };
}

async function readAll(
  answer: IncomingMessage,
  limit: number,
  where: string,
  host: string,
  signal: AbortSignal,
): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > limit) {
        answer.destroy();
        throw new KubeError('too-large', where, `${where}: more than ${limit} bytes from ${host}`);
      }
      chunks.push(chunk);
    }
  } catch (cause) {
    throw connectionError(cause, where, host, signal);
  }
  return Buffer.concat(chunks).toString('utf8');
}

async function* splitLines(answer: IncomingMessage, where: string): AsyncIterable<string> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      parts.push(chunk.subarray(start, end));
      const line = Buffer.concat(parts).toString('utf8');
      parts = [];
      length = 0;
      start = end + 1;
      if (line !== '') yield line;
    }
    if (start === chunk.length) continue;
    length += chunk.length - start;
    if (length > maxLine)
      throw new KubeError('too-large', where, `${where}: an event of more than ${maxLine} bytes`);
    parts.push(chunk.subarray(start));
  }
}

function connectionError(cause: unknown, where: string, host: string, signal: AbortSignal): KubeError {
  if (cause instanceof KubeError) return cause;
  if (signal.aborted)
    return new KubeError('timeout', where, `${where}: given up: ${textOf(signal.reason)}`, { cause });
  return new KubeError('unavailable', where, `${where}: ${host} cannot be reached: ${textOf(cause)}`, {
    cause,
  });
}

function textOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

function queryText(query: Query | undefined): string {
  if (query === undefined) return '';
  const parts = Object.entries(query).map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`);
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}
