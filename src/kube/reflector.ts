/**
 * A reflector keeps a cache of one kind of object true: a list in pages, then a watch that goes on where the list ended,
 * for ever. Objects are trimmed to what the caller uses before they are kept. What breaks is tried again with back-off;
 * a version that is gone (410) leads to a new list; a watch on which nothing comes, not even a bookmark, is given up.
 *
 * Rules: Kubernetes API concepts, "Efficient detection of changes"; client-go tools/cache/reflector.go.
 */
import type { Log } from '../telemetry/log.ts';
import { KubeError } from './errors.ts';
import type { KubeClient } from './client.ts';
import type { KubeObject } from './objects.ts';
import { untilAborted, wait } from './wait.ts';

/** One object that is new, changed or gone. */
export interface Change<T> {
  readonly namespace: string;
  readonly name: string;
  /** `undefined`: it is gone, or `trim` does not keep it any more. */
  readonly object: T | undefined;
  /** `undefined`: it is new. */
  readonly previous: T | undefined;
}

export interface ReflectorHealth {
  /** Whether a first list is there. */
  readonly synced: boolean;
  /** Whether a watch is open now. */
  readonly watching: boolean;
  /** Failures since the watch was last sound. */
  readonly failures: number;
}

export interface Reflector<T> {
  get(namespace: string, name: string): T | undefined;
  values(): Iterable<T>;
  /** Resolves after the first complete list; rejects with the signal's reason. */
  ready(signal: AbortSignal): Promise<void>;
  /** Hears that something changed. */
  onChange(listener: () => void): void;
  /** Hears of each object that changed, after a list too. */
  onEach(listener: (change: Change<T>) => void): void;
  readonly size: number;
  health(): ReflectorHealth;
  stop(): void;
}

export interface ReflectorOptions<T> {
  readonly client: KubeClient;
  /** Path of the collection, such as `/api/v1/nodes`. */
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** What is kept of an object; `undefined`: nothing, as if it were not there. */
  readonly trim: (object: KubeObject) => T | undefined;
  readonly log: Log;
  /** Waits; injected by tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random?: () => number;
}

interface Page {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly KubeObject[];
}

interface WatchEvent {
  readonly type?: string;
  readonly object?: KubeObject & { readonly code?: number; readonly message?: string };
}

const pageSize = 500;
/** The server ends a watch after this; jitter keeps many replicas from coming back at once (client-go: 5 to 10 min). */
const watchSeconds = { least: 300, spread: 300 };
/** Bookmarks come about once a minute: this is two of them missed. */
const idleMs = 150_000;
const backoff = { firstMs: 1_000, mostMs: 30_000 };
/** A watch that lived this long was sound: the next failure starts with the first back-off again. */
const soundMs = 60_000;

/** Starts a reflector at once. */
export function startReflector<T>(options: ReflectorOptions<T>): Reflector<T> {
  const { client, path, trim, log } = options;
  const sleep = options.sleep ?? wait;
  const random = options.random ?? Math.random;
  const stopping = new AbortController();
  const listeners: (() => void)[] = [];
  const eachListeners: ((change: Change<T>) => void)[] = [];
  let objects = new Map<string, T>();
  let version: string | undefined;
  let failures = 0;
  let synced = false;
  let watching = false;
  const first = Promise.withResolvers<void>();

  function isolated(call: () => void): void {
    try {
      call();
    } catch (error) {
      log.error({ err: error, path }, 'a listener of a watch failed');
    }
  }

  function changed(): void {
    for (const listener of listeners) isolated(listener);
  }

  function told(key: string, previous: T | undefined, object: T | undefined): void {
    if (eachListeners.length === 0 || (previous === undefined && object === undefined)) return;
    const [namespace = '', name = ''] = key.split('/');
    for (const listener of eachListeners) isolated(() => listener({ namespace, name, object, previous }));
  }

  /** Puts one object into its place, or takes it out. */
  function set(key: string, object: T | undefined): void {
    const previous = objects.get(key);
    if (object === undefined) objects.delete(key);
    else objects.set(key, object);
    told(key, previous, object);
  }

  function replaceAll(found: Map<string, T>): void {
    const before = objects;
    objects = found;
    synced = true;
    if (eachListeners.length > 0) {
      for (const [key, object] of found) told(key, before.get(key), object);
      for (const [key, previous] of before) if (!found.has(key)) told(key, previous, undefined);
    }
    first.resolve();
    changed();
  }

  async function list(): Promise<string> {
    const found = new Map<string, T>();
    let token: string | undefined;
    do {
      const page: Page = await client.get<Page>(path, {
        signal: stopping.signal,
        query: { limit: pageSize, ...selection(), ...(token === undefined ? {} : { continue: token }) },
      });
      for (const item of page.items ?? []) {
        const kept = trim(item);
        if (kept !== undefined) found.set(keyOf(item), kept);
      }
      token = page.metadata?.continue === '' ? undefined : page.metadata?.continue;
      if (token === undefined) {
        replaceAll(found);
        return page.metadata?.resourceVersion ?? '';
      }
    } while (!stopping.signal.aborted);
    throw stopping.signal.reason;
  }

  function selection(): Readonly<Record<string, string>> {
    const { labelSelector, fieldSelector } = options;
    return {
      ...(labelSelector !== undefined && { labelSelector }),
      ...(fieldSelector !== undefined && { fieldSelector }),
    };
  }

  /** Follows one watch to its end; returns the version to go on from. */
  async function follow(from: string): Promise<string> {
    let at = from;
    const query = {
      watch: true,
      allowWatchBookmarks: true,
      resourceVersion: from,
      timeoutSeconds: Math.round(watchSeconds.least + random() * watchSeconds.spread),
      ...selection(),
    };
    for await (const line of client.lines(path, { signal: stopping.signal, query, idleMs })) {
      if (stopping.signal.aborted) break;
      at = apply(parseEvent(line, path)) ?? at;
      version = at;
    }
    return at;
  }

  function apply(event: WatchEvent): string | undefined {
    const object = event.object;
    if (object === undefined)
      throw new KubeError('bad-answer', `GET ${path}`, 'a watch event without an object');
    if (event.type === 'ERROR') {
      const code = object.code === 410 ? 'gone' : 'unavailable';
      throw new KubeError(
        code,
        `GET ${path}`,
        `watch ended by the server: ${object.message ?? object.code ?? 'no reason'}`,
      );
    }
    if (event.type === 'ADDED' || event.type === 'MODIFIED') set(keyOf(object), trim(object));
    else if (event.type === 'DELETED') set(keyOf(object), undefined);
    if (event.type !== 'BOOKMARK') changed();
    return object.metadata?.resourceVersion;
  }

  async function once(): Promise<void> {
    version ??= await list();
    const started = performance.now();
    watching = true;
    try {
      version = await follow(version);
    } finally {
      watching = false;
    }
    const lived = performance.now() - started;
    if (lived >= soundMs) failures = 0;
    // A server that ends each watch at once would be asked in a circle.
    else if (lived < backoff.firstMs) await sleep(backoff.firstMs, stopping.signal);
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        await once();
      } catch (error) {
        if (stopping.signal.aborted) return;
        await recover(error);
      }
    }
  }

  async function recover(error: unknown): Promise<void> {
    const gone = error instanceof KubeError && error.code === 'gone';
    // Only a lost connection may go on from where it was; anything else is answered by a new list.
    if (!(error instanceof KubeError) || !error.temporary || gone) version = undefined;
    const asked = error instanceof KubeError ? (error.retryAfterMs ?? 0) : 0;
    const delay = Math.min(backoff.mostMs, backoff.firstMs * 2 ** failures) * (0.5 + random() / 2);
    failures = Math.min(failures + 1, 10);
    log.warn(
      { path, error: error instanceof Error ? error.message : String(error) },
      'watch is interrupted; trying again',
    );
    await sleep(gone ? delay / 2 : Math.max(delay, Math.min(asked, backoff.mostMs)), stopping.signal).catch(
      () => undefined,
    );
  }

  void run();

  return {
    get: (namespace, name) => objects.get(`${namespace}/${name}`),
    values: () => objects.values(),
    ready: (signal) => untilAborted(first.promise, signal),
    onChange: (listener) => {
      listeners.push(listener);
    },
    onEach: (listener) => {
      eachListeners.push(listener);
    },
    get size() {
      return objects.size;
    },
    health: () => ({ synced, watching, failures }),
    stop: () => {
      listeners.length = 0;
      eachListeners.length = 0;
      stopping.abort(new Error('stopped'));
    },
  };
}

function keyOf(object: KubeObject): string {
  return `${object.metadata?.namespace ?? ''}/${object.metadata?.name ?? ''}`;
}

function parseEvent(line: string, path: string): WatchEvent {
  try {
    return JSON.parse(line) as WatchEvent;
  } catch (cause) {
    throw new KubeError('bad-answer', `GET ${path}`, 'a line of a watch is not JSON', { cause });
  }
}
