/**
 * A server that behaves like an API server with a store: any path under `/api/v1` and `/apis`, lists
 * in pages, selectors, watches, patches, preconditions, finalizers, status, evictions and logs. It does not
 * validate objects: rules of a kind (such as allowed changes of a gated pod) need a real server. Tests add
 * faults. `requests` has every request.
 */
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { listenAsKube, type KubeRequest, type ListenOptions } from './kube-server.ts';
import { CallersOfStore } from './kube-store/callers.ts';
import { Faults, matches, type Fault, type Match, type StoreRequest } from './kube-store/faults.ts';
import { Objects, type StoredObject } from './kube-store/objects.ts';
import { parsePath, parseSelector, type Target } from './kube-store/paths.ts';
import { Reads, type LogText } from './kube-store/reads.ts';
import { Watches } from './kube-store/watches.ts';
import { Writes, notFound, statusAnswer, type Answer } from './kube-store/writes.ts';
import { until } from './until.ts';

export type { Fault, Match, StoreRequest } from './kube-store/faults.ts';
export type { StoredObject } from './kube-store/objects.ts';

/** The response to an eviction. Default: the pod is deleted. */
export interface EvictionAnswer {
  readonly status: number;
  readonly message?: string;
  readonly retryAfter?: number;
}

export type KubeStore = Awaited<ReturnType<typeof startKubeStore>>;

export interface KubeStoreOptions extends ListenOptions {
  /** The server's wall clock in milliseconds, used for its `Date` headers too. */
  readonly now?: () => number;
  /** Whether deleted pods with a node stay until `remove`, with a `deletionTimestamp`. Default: false. */
  readonly gracefulPods?: boolean;
}

/** Client and server share this event loop. A new connection with one request takes about twenty turns. */
const quietTurns = 80;

/** Of a list, in characters. */
const partLength = 64 * 1024;

export async function startKubeStore(options: KubeStoreOptions = {}) {
  const now = options.now ?? (() => Date.now());
  const objects = new Objects(now);
  const watches = new Watches(objects);
  const writes = new Writes({ objects, now, gracefulPods: options.gracefulPods ?? false });
  const reads = new Reads(objects);
  const faults = new Faults();
  const callers = new CallersOfStore();
  const requests: StoreRequest[] = [];
  const evictions = new Map<string, EvictionAnswer[]>();

  function target(path: string): Target {
    const found = parsePath(path);
    if (found === undefined) throw new TypeError(`${path} is no path of the API`);
    return found;
  }

  function evict(at: Target, request: StoreRequest): Answer {
    const path = request.path.replace(/\/eviction$/, '');
    const scripted = evictions.get(path)?.shift();
    if (objects.get(at) === undefined) return notFound(at);
    if (scripted !== undefined && scripted.status >= 300) {
      const reason = scripted.status === 429 ? 'TooManyRequests' : 'Failure';
      const message = scripted.message ?? "Cannot evict pod as it would violate the pod's disruption budget.";
      const causes = [{ reason: 'DisruptionBudget', message: 'The disruption budget needs more pods' }];
      return withRetryAfter(statusAnswer(scripted.status, reason, message, { causes }), scripted.retryAfter);
    }
    const { deleteOptions } = (request.json ?? {}) as { deleteOptions?: unknown };
    const answer = writes.remove(at, deleteOptions);
    return answer.status < 300 ? statusAnswer(201, '', '') : answer;
  }

  function answerOf(at: Target, request: StoreRequest): Answer {
    const { method } = request;
    if (method === 'GET') return reads.answer(at, request);
    if (method === 'POST' && at.subresource === 'eviction') return evict(at, request);
    if (method === 'POST' && at.name === '') return writes.create(at, request);
    const isWhole = ['', 'status', 'approval'].includes(at.subresource);
    if (method === 'PATCH' && at.name !== '' && isWhole) return writes.patch(at, request);
    if (method === 'DELETE' && at.name !== '' && at.subresource === '')
      return writes.remove(at, request.json);
    const message = `the test's API server refuses ${method} ${request.path}: write by patch`;
    return statusAnswer(405, 'MethodNotAllowed', message);
  }

  async function handle(request: StoreRequest, response: ServerResponse): Promise<void> {
    const fault = faults.take(request);
    await fault?.before?.(request);
    if (fault?.hang === true) return;
    if (fault?.reset === true) {
      response.req.socket.destroy();
      return;
    }
    if (fault?.status !== undefined) {
      const message = fault.message ?? 'an injected fault';
      const details = fault.causes === true ? { causes: [{ field: 'spec', message }] } : {};
      send(withRetryAfter(statusAnswer(fault.status, 'Fault', message, details), fault.retryAfter), response);
      return;
    }
    const at = parsePath(request.path);
    const selector = at && parseSelector(at.resource, request.query);
    if (at === undefined) send(statusAnswer(404, 'NotFound', `${request.path} not found`), response);
    else if (callers.forward(at, request, response)) return;
    else if (selector === undefined) {
      send(statusAnswer(400, 'BadRequest', 'unable to parse a selector'), response);
    } else if (request.verb === 'WATCH') watches.open(at, request.query, selector, response);
    else {
      const answer = callers.answer(at, request) ?? answerOf(at, request);
      if (fault?.lost === true) response.req.socket.destroy();
      else send(answer, response);
    }
  }

  function send({ status, body, headers }: Answer, response: ServerResponse): void {
    const isText = typeof body === 'string';
    response.writeHead(status, { 'content-type': isText ? 'text/plain' : 'application/json', ...headers });
    if (isList(body)) void sendList(body, response);
    else response.end(isText ? body : JSON.stringify(body));
  }

  function receive(received: KubeRequest, response: ServerResponse): void {
    response.setHeader('date', new Date(now()).toUTCString());
    const request: StoreRequest = {
      ...received,
      verb: received.query.get('watch') === 'true' ? 'WATCH' : received.method,
      json: received.body === '' ? undefined : parsed(received.body),
    };
    requests.push(request);
    void handle(request, response);
  }
  const listener = await listenAsKube('archwright', receive, options);

  return {
    access: listener.access,
    requests,
    /** Tokens, grants, and Services behind the proxy. */
    callers,
    received: (match: Match): StoreRequest[] => requests.filter((request) => matches(match, request)),
    writes: (): StoreRequest[] => requests.filter((request) => request.method !== 'GET'),
    connections: (): number => listener.connections(),
    /**
     * Stores an object under its path like another client, with its status. Each call creates a new version.
     */
    put: (path: string, object: object): StoredObject => objects.put(target(path), object),
    get: (path: string): StoredObject | undefined => objects.get(target(path)),
    list: (path: string): StoredObject[] => objects.list(target(path)),
    remove: (path: string): void => void objects.remove(target(path)),
    version: (): number => objects.version(),
    /** Makes requests fail. The first matching fault applies. @returns a function that removes the fault */
    fault: (match: Match, fault: Fault): (() => void) => faults.add(match, fault),
    /** Sets the responses to evictions of a pod, by its path, in order. Later evictions delete the pod. */
    evictions: (path: string, ...answers: EvictionAnswer[]): void => void evictions.set(path, answers),
    /** A pod's response to a path such as `…/pods/web-0:8080/proxy/metrics`; `undefined`: no server. */
    page: (path: string, text: (() => string) | undefined): void => reads.page(path, text),
    log: (path: string, text: LogText): void => reads.log(path, text),
    watches: (path?: string): number => watches.count(path),
    bookmark: (): void => watches.bookmark(),
    /** Ends watches, resets their connections, or leaves them open and silent. */
    cutWatches: (how: 'end' | 'reset' | 'silence', path?: string): void => watches.cut(how, path),
    /** Drops old versions: older watches and further pages of lists get 410. */
    compact: (): void => {
      objects.compact();
      reads.forgetPages();
    },
    dropConnections: (): void => listener.dropConnections(),
    /** Resolves when no request has arrived for many turns of the event loop. For tests with a fake clock. */
    quiet: async (): Promise<void> => {
      for (let turns = 0, last = requests.length; turns < quietTurns; turns++) {
        await setImmediate();
        if (requests.length === last) continue;
        last = requests.length;
        turns = 0;
      }
    },
    /** Resolves when the condition holds. Rejects after a while, with the name of the condition. */
    until,
    close: (): Promise<void> => listener.close(),
  };
}

interface ListBody {
  readonly kind: 'List';
  readonly items: readonly object[];
}

function isList(body: unknown): body is ListBody {
  return typeof body === 'object' && body !== null && 'kind' in body && body.kind === 'List';
}

/** Writes in parts, because a page of large objects exceeds V8's string limit. The reader may disconnect. */
async function sendList({ items, ...list }: ListBody, response: ServerResponse): Promise<void> {
  let text = `${JSON.stringify(list).slice(0, -1)},"items":[`;
  for (const [index, item] of items.entries()) {
    text += (index === 0 ? '' : ',') + JSON.stringify(item);
    if (text.length < partLength) continue;
    if (response.destroyed) return;
    if (!response.write(text)) await setImmediate();
    text = '';
  }
  response.end(`${text}]}`);
}

function withRetryAfter(answer: Answer, seconds: number | undefined): Answer {
  return seconds === undefined ? answer : { ...answer, headers: { 'retry-after': String(seconds) } };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
