/**
 * A reflector keeps a cache of one kind of object true; `list-watch.ts` has the protocol. Objects are trimmed to what the
 * caller uses before they are kept. A listener, or a trim, that throws harms nothing but what it threw on: an object that
 * cannot be trimmed is as if it were not there.
 */
import { systemClock, type Clock } from '../../async/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { KubeClient } from '../api/client.ts';
import { listAndWatch } from './list-watch.ts';
import { watchMetrics } from '../metrics.ts';
import type { KubeObject } from '../api/objects.ts';
import { unlessAborted, wait } from '../../async/wait.ts';

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
  /** Resolves after the first complete list; rejects with the signal's reason, and when the reflector is stopped before. */
  ready(signal: AbortSignal): Promise<void>;
  /** Hears that something changed. */
  onChange(listener: () => void): void;
  /** Hears of each object that changed, after a list too. */
  onEach(listener: (change: Change<T>) => void): void;
  readonly size: number;
  health(): ReflectorHealth;
  /** Ends it: no listener hears anything after this. */
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
  /** Whether `trim` may keep something of an object with this text; those of which it cannot are not parsed. */
  readonly mayKeep?: (text: string) => boolean;
  readonly log: Log;
  readonly metrics?: Metrics;
  /** Whether the kind is not installed, for the metrics: then nothing is broken. */
  readonly isAbsent?: () => boolean;
  /** A watch on which nothing comes for so long is given up; asked when one is opened. By default two bookmarks and a half. */
  readonly idleMs?: () => number;
  readonly clock?: Clock;
  /** Waits; injected by tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random?: () => number;
}

/** Bookmarks come about once a minute: this is two of them missed. */
export const usualIdleMs = 150_000;

/** Starts a reflector at once. */
export function startReflector<T>(options: ReflectorOptions<T>): Reflector<T> {
  const { client, path, trim, log } = options;
  const stopping = new AbortController();
  const listeners: (() => void)[] = [];
  const eachListeners: ((change: Change<T>) => void)[] = [];
  let objects = new Map<string, T>();
  let synced = false;
  let watching = false;
  let failures = 0;
  let untrimmed = 0;
  const first = Promise.withResolvers<void>();
  // Nobody may be waiting when it is stopped.
  first.promise.catch(() => undefined);
  const counters = watchMetrics(options.metrics, path, () => {
    if (!synced) return 'starting';
    if (watching) return 'open';
    return options.isAbsent?.() === true ? 'absent' : 'broken';
  });

  function isolated(call: () => void): void {
    if (stopping.signal.aborted) return;
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
    for (const listener of eachListeners) {
      isolated(() => listener({ namespace, name, object, previous }));
    }
  }

  function trimmed(object: KubeObject): T | undefined {
    try {
      return trim(object);
    } catch (error) {
      untrimmed++;
      // Hundreds of them are one piece of news.
      if (Number.isInteger(Math.log2(untrimmed))) {
        const { namespace, name } = object.metadata ?? {};
        log.error(
          { err: error, path, namespace, name, untrimmed },
          'an object cannot be understood; left out',
        );
      }
      return undefined;
    }
  }

  /** Puts one object into its place, or takes it out. */
  function set(key: string, object: T | undefined): void {
    const previous = objects.get(key);
    if (object === undefined) objects.delete(key);
    else objects.set(key, object);
    told(key, previous, object);
    changed();
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

  void listAndWatch({
    client,
    path,
    selection: {
      ...(options.labelSelector !== undefined && { labelSelector: options.labelSelector }),
      ...(options.fieldSelector !== undefined && { fieldSelector: options.fieldSelector }),
    },
    signal: stopping.signal,
    listed: () => {
      const found = new Map<string, T>();
      return {
        add: (object) => {
          const kept = trimmed(object);
          if (kept !== undefined) found.set(keyOf(object), kept);
        },
        done: () => replaceAll(found),
      };
    },
    changed: (object, whole) => set(keyOf(object), whole ? trimmed(object) : undefined),
    mayKeep: options.mayKeep,
    opened: () => {
      watching = true;
    },
    ended: (error) => {
      watching = false;
      failures = error === undefined ? 0 : failures + 1;
      counters.restarted(error);
    },
    idleMs: options.idleMs ?? (() => usualIdleMs),
    clock: options.clock ?? systemClock,
    log,
    sleep: options.sleep ?? wait,
    random: options.random ?? Math.random,
  });

  return {
    get: (namespace, name) => objects.get(`${namespace}/${name}`),
    values: () => objects.values(),
    ready: (signal) => unlessAborted(first.promise, signal),
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
      watching = false;
      counters.stop();
      stopping.abort(new Error('stopped'));
      first.reject(new Error('stopped'));
    },
  };
}

function keyOf(object: KubeObject): string {
  return `${object.metadata?.namespace ?? ''}/${object.metadata?.name ?? ''}`;
}
