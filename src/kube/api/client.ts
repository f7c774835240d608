/**
 * A Kubernetes API client: raw JSON over one pool of keep-alive connections, without knowledge of kinds.
 * Paths are API paths such as `/api/v1/nodes`. Lists come in pages, watches as lines; `reflector.ts` makes a
 * cache of both. Every read has a byte limit and a time limit.
 */
import { systemClock, type Clock } from '../../async/clock.ts';
import { limited } from '../../async/wait.ts';
import { readLines } from '../../http/body.ts';
import type { OpenResponse } from '../../http/exchange.ts';
import { TransportError } from '../../http/transport-error.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { KubeAccess } from './access.ts';
import { connectionError, readStart, readText, errorOfAnswer, KubeError } from './errors.ts';
import { requestCounter, type Verb } from '../metrics.ts';
import { Transport, type Call, type Query } from './transport.ts';

/** Every request fails with a KubeError. */
export interface KubeClient {
  /** One object, or one page of a list; `too-large` for more than `maxBytes`. */
  get<T>(path: string, options: GetOptions): Promise<T>;
  /** Creates an object, a token or another subresource; returns the server's version of it. */
  create<T>(path: string, object: object, options: CallOptions): Promise<T>;
  /**
   * Changes an object by a patch, never by a full write. If the object has changed since, a merge patch with
   * `metadata.resourceVersion`, or a JSON patch that replaces it, fails with `conflict`.
   */
  patch<T>(path: string, patch: Patch, options: CallOptions): Promise<T>;
  /** Deletes one object; `conflict` if a precondition does not hold. */
  delete(path: string, options: DeleteOptions): Promise<void>;
  /** A plain text, such as the end of a container's log, up to `maxBytes`. */
  text(path: string, options: CallOptions & { readonly maxBytes: number }): Promise<string>;
  /** The lines of a response that stays open (a watch); `timeout` after `idleMs` of silence. */
  lines(path: string, options: LinesOptions): AsyncIterable<string>;
  /**
   * The API server's wall clock in milliseconds, from the `Date` header of its last answer: behind by at most a
   * second and the way of that answer, so it may step back; never ahead. The local clock before the first answer.
   */
  serverNow(): number;
  close(): void;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  readonly query?: Query;
  /** A write calls it with a connection, right before sending. An error cancels the request. */
  readonly beforeSend?: (() => void) | undefined;
}

export interface GetOptions extends CallOptions {
  /** Default: 64 MiB. */
  readonly maxBytes?: number;
  /** The objects of a list have no spec and no status. */
  readonly metadataOnly?: boolean;
}

export interface LinesOptions extends CallOptions {
  readonly idleMs: number;
  /** Called when the response begins, which may be long before the first line. */
  readonly onOpen?: () => void;
}

/** A JSON patch (RFC 6902), merge patch (RFC 7386), or server-side apply with force. */
export type Patch =
  | { readonly type: 'json'; readonly body: readonly object[] }
  | { readonly type: 'merge'; readonly body: object }
  | { readonly type: 'apply'; readonly body: object; readonly fieldManager: string };

export interface DeleteOptions extends CallOptions {
  /** Only this very object. */
  readonly uid?: string;
  readonly resourceVersion?: string;
}

/** https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply */
const patchTypes: Readonly<Record<Patch['type'], string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  // JSON is YAML.
  apply: 'application/apply-patch+yaml',
};

export interface KubeClientOptions {
  readonly access: KubeAccess;
  readonly userAgent: string;
  /** Limit for one answer, milliseconds. */
  readonly timeoutMs?: number | undefined;
  readonly clock?: Clock;
  readonly metrics?: Metrics | undefined;
}

/** https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches */
const metadataList = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

/** A page of 500 pods of 20 KB each is 10 MB; the rest is for large objects (etcd's own limit: 1.5 MiB). */
const maxAnswer = 64 * 1024 * 1024;
/**
 * One object, also as an event of a watch. etcd takes requests of 1.5 MiB, and the API server writes `<`, `>`, `&` and
 * control characters as six bytes (Go's encoding/json). A smaller limit would let one pod end the watch of all pods.
 */
const maxObject = 10 * 1024 * 1024;
/** An error's `Status` is short. */
const maxErrorBody = 64 * 1024;
/** A GET by name takes milliseconds; a page of a large list takes seconds. */
const defaultTimeoutMs = 30_000;

/** Makes a client. Connections are opened when first needed and closed by `close`. */
export function createKubeClient(options: KubeClientOptions): KubeClient {
  const { access, userAgent, timeoutMs = defaultTimeoutMs, clock = systemClock } = options;
  const transport = new Transport({ access, userAgent, timeoutMs, clock });
  /** How far the server's clock is ahead of the monotonic one. */
  let aheadMs: number | undefined;
  const count = requestCounter(options.metrics);
  const { host } = transport;

  async function open(call: Call, signal: AbortSignal): Promise<OpenResponse> {
    const verb = verbOf(call);
    try {
      const response = await transport.open(call, signal);
      const date = Date.parse(response.headers['date']?.[0] ?? '');
      if (!Number.isNaN(date)) aheadMs = date - clock.monotonic();
      count(verb, response.status);
      return response;
    } catch (error) {
      count(verb, undefined);
      throw error;
    }
  }

  async function send<T>(call: Call, asker: AbortSignal, maxBytes: number): Promise<T> {
    const where = `${call.method} ${call.path}`;
    const response = await open(call, AbortSignal.any([asker, AbortSignal.timeout(timeoutMs)]));
    const { status } = response;
    // 201: created, also by an apply; 202: a deletion that goes on.
    const isSuccess =
      status === 200 ||
      (status === 201 && (call.method === 'POST' || call.method === 'PATCH')) ||
      (status === 202 && call.method === 'DELETE');
    if (!isSuccess) throw await statusError(response, where);
    const body = await readText(response, maxBytes, where);
    try {
      return JSON.parse(body) as T;
    } catch (cause) {
      const message = `${where}: ${host} answered with something that is not JSON`;
      throw new KubeError('bad-answer', where, message, { cause });
    }
  }

  async function* lines(
    path: string,
    { signal, query, idleMs, onOpen }: LinesOptions,
  ): AsyncIterable<string> {
    const where = `GET ${path}`;
    const call = { method: 'GET', path, query, idleMs } as const;
    const response = await limited(timeoutMs, signal, (within) => open(call, within));
    try {
      if (response.status !== 200) {
        const slow = new TransportError('total-timeout', host, `no complete response within ${timeoutMs} ms`);
        const timer = setTimeout(() => response.close(slow), timeoutMs);
        throw await statusError(response, where).finally(() => clearTimeout(timer));
      }
      onOpen?.();
      yield* readLines(response, { maxLineBytes: maxObject });
    } catch (cause) {
      throw connectionError(cause, where);
    } finally {
      response.close();
    }
  }

  return {
    get: (path, { signal, query, maxBytes = maxAnswer, metadataOnly = false }) =>
      send({ method: 'GET', path, query, ...(metadataOnly && { accept: metadataList }) }, signal, maxBytes),
    create: (path, object, { signal, query, beforeSend }) =>
      send({ method: 'POST', path, query, body: JSON.stringify(object), beforeSend }, signal, maxObject),
    patch: (path, patch, { signal, query, beforeSend }) => {
      const manager = patch.type === 'apply' ? { fieldManager: patch.fieldManager, force: true } : {};
      const body = JSON.stringify(patch.body);
      const contentType = patchTypes[patch.type];
      const call = { method: 'PATCH', path, query: { ...manager, ...query }, body, contentType } as const;
      return send({ ...call, beforeSend }, signal, maxObject);
    },
    delete: async (path, { signal, query, beforeSend, uid, resourceVersion }) => {
      const isGuarded = uid !== undefined || resourceVersion !== undefined;
      const body = JSON.stringify({
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        preconditions: isGuarded ? { uid, resourceVersion } : undefined,
      });
      await send<unknown>({ method: 'DELETE', path, query, body, beforeSend }, signal, maxObject);
    },
    text: async (path, { signal: asker, query, maxBytes }) => {
      const where = `GET ${path}`;
      const signal = AbortSignal.any([asker, AbortSignal.timeout(timeoutMs)]);
      const response = await open({ method: 'GET', path, query }, signal);
      if (response.status !== 200) throw await statusError(response, where);
      return await readStart(response, maxBytes, where);
    },
    lines,
    serverNow: () => (aheadMs === undefined ? clock.now() : aheadMs + clock.monotonic()),
    close: () => transport.close(),
  };
}

/** Reads the body of a failed response, whose status counts however long it is. @returns the error to throw */
async function statusError(response: OpenResponse, where: string): Promise<KubeError> {
  const body = await readStart(response, maxErrorBody, where);
  return errorOfAnswer(response.status, body, where, response.headers['retry-after']?.[0]);
}

const writeVerbs = { POST: 'create', PATCH: 'patch', DELETE: 'delete' } as const;

function verbOf({ method, query }: Call): Verb {
  if (method !== 'GET') return writeVerbs[method];
  return query?.['watch'] === true ? 'watch' : query?.['limit'] === undefined ? 'get' : 'list';
}
