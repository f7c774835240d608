/**
 * A reflector keeps a cache of one kind of object current; `list-watch.ts` has the protocol. Objects are trimmed to what the
 * caller uses before they are kept. An error of `trim` leaves out its object, an error of a listener affects no other.
 */
import { systemClock, type Clock } from '../../async/clock.ts';
import { unlessAborted } from '../../async/wait.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { KubeClient } from '../api/client.ts';
import type { KubeObject } from '../api/objects.ts';
import { watchMetrics } from '../metrics.ts';
import { listAndWatch } from './list-watch.ts';
import { Store, type Change } from './store.ts';

export interface ReflectorHealth {
  /** Whether the first list is complete. */
  readonly synced: boolean;
  /** Whether a watch is open now. */
  readonly watching: boolean;
  /** Failures since the watch was last sound. */
  readonly failures: number;
}

export interface Reflector<T> {
  get(namespace: string, name: string): T | undefined;
  values(): Iterable<T>;
  /** Resolves after the first complete list; rejects with the signal's reason, and if the reflector is stopped before. */
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
  /** What is kept of an object; `undefined`: nothing, as if it did not exist. */
  readonly trim: (object: KubeObject) => T | undefined;
  /** Whether `trim` may keep an object with this JSON. Others are not parsed. Default: all may be kept. */
  readonly mayKeep?: (text: string) => boolean;
  readonly log: Log;
  readonly metrics?: Metrics;
  /** Whether the kind is not installed. The metrics then show `absent`, not `broken`. */
  readonly isAbsent?: () => boolean;
  /** A watch that is silent for this long is given up; called for each watch. Default: two and a half bookmarks. */
  readonly idleMs?: () => number;
  readonly clock?: Clock;
}

/** Bookmarks come about once a minute: this is two of them missed. */
export const usualIdleMs = 150_000;

/** Starts a reflector at once. */
export function startReflector<T>(options: ReflectorOptions<T>): Reflector<T> {
  const { client, path, labelSelector, fieldSelector, mayKeep, log, clock = systemClock } = options;
  const stopping = new AbortController();
  const store = new Store<T>((error) => log.error({ err: error, path }, 'a listener of a watch failed'));
  const trim = isolatedTrim(options);
  const health = { synced: false, watching: false, failures: 0 };
  const first = Promise.withResolvers<void>();
  // It may be stopped while no caller waits.
  first.promise.catch(() => undefined);
  const counters = watchMetrics(options.metrics, path, () => {
    if (!health.synced) return 'starting';
    if (health.watching) return 'open';
    return options.isAbsent?.() === true ? 'absent' : 'broken';
  });

  void listAndWatch({
    client,
    path,
    selection: {
      ...(labelSelector !== undefined && { labelSelector }),
      ...(fieldSelector !== undefined && { fieldSelector }),
    },
    signal: stopping.signal,
    listed: () => {
      const found = new Map<string, T>();
      return {
        add: (object) => {
          const kept = trim(object);
          if (kept !== undefined) found.set(keyOf(object), kept);
        },
        done: () => {
          health.synced = true;
          first.resolve();
          store.replaceAll(found);
        },
      };
    },
    changed: (object, whole) => store.set(keyOf(object), whole ? trim(object) : undefined),
    mayKeep,
    opened: () => {
      health.watching = true;
    },
    ended: (error) => {
      health.watching = false;
      health.failures = error === undefined ? 0 : health.failures + 1;
      counters.restarted(error);
    },
    idleMs: options.idleMs ?? (() => usualIdleMs),
    clock,
    log,
  });

  return {
    get: (namespace, name) => store.get(namespace, name),
    values: () => store.values(),
    ready: (signal) => unlessAborted(first.promise, signal),
    onChange: (listener) => store.onChange(listener),
    onEach: (listener) => store.onEach(listener),
    get size() {
      return store.size;
    },
    health: () => ({ ...health }),
    stop: () => {
      store.close();
      health.watching = false;
      counters.stop();
      stopping.abort(new Error('stopped'));
      first.reject(new Error('stopped'));
    },
  };
}

/** `trim`, which leaves out an object that it throws on. */
function isolatedTrim<T>({
  trim,
  path,
  log,
}: Pick<ReflectorOptions<T>, 'trim' | 'path' | 'log'>): (object: KubeObject) => T | undefined {
  let failures = 0;
  return (object) => {
    try {
      return trim(object);
    } catch (error) {
      failures++;
      // Failures 1, 2, 4, 8 and so on: hundreds of them are one piece of news.
      if (Number.isInteger(Math.log2(failures))) {
        const { namespace, name } = object.metadata ?? {};
        const fields = { err: error, path, namespace, name, untrimmed: failures };
        log.error(fields, 'an object cannot be understood and is left out');
      }
      return undefined;
    }
  };
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`;
}
