/**
 * A reflector keeps a cache of one kind of object current; `list-watch.ts` has the protocol. Objects are
 * stored as reduced by `trim`. An error of `trim` leaves out its object; a listener's error affects no other.
 */
import { systemClock, type Clock } from '../../async/clock.ts';
import { unlessAborted } from '../../async/wait.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { KubeClient } from '../api/client.ts';
import type { KubeObject } from '../api/objects.ts';
import { watchMetrics, type WatchState } from '../metrics.ts';
import { LargeObjects, Store } from './store.ts';
import { ListWatch, type Listing } from './list-watch.ts';

/** One object that is new, changed or gone. */
export interface Change<T> {
  readonly namespace: string;
  readonly name: string;
  /** `undefined`: it is gone, or `trim` now drops it. */
  readonly object: T | undefined;
  /** `undefined`: it is new. */
  readonly previous: T | undefined;
}

export interface ReflectorOptions<T> {
  readonly client: KubeClient;
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** The stored part of an object; `undefined`: none, as if it did not exist. */
  readonly trim: (object: KubeObject) => T | undefined;
  /** Memory for large objects (`store.ts`), and a replacement for one without room. Default: none. */
  readonly large?: { readonly maxBytes: number; readonly instead?: (object: T) => T };
  readonly log: Log;
  readonly metrics?: Metrics;
  /** The kind may not be installed: the collection is empty then, and the metrics show `absent`. */
  readonly isOptional?: boolean;
  /** Silence after which a watch is given up; called for each watch. Default: two and a half bookmarks. */
  readonly idleMs?: () => number;
  readonly clock?: Clock;
}

/** Bookmarks come about once a minute: this is two of them missed. */
export const usualIdleMs = 150_000;

export type Reflector<T> = ReturnType<typeof startReflector<T>>;

export function startReflector<T>(options: ReflectorOptions<T>) {
  const { client, path, labelSelector, fieldSelector, isOptional = false, trim, large } = options;
  const { log, clock = systemClock, idleMs = () => usualIdleMs } = options;
  const counters = watchMetrics(options.metrics, path, state);
  const stopping = new AbortController();
  const first = Promise.withResolvers<void>();
  // It may be stopped without a waiting caller.
  first.promise.catch(() => undefined);
  let objects = new Store<T>();
  let room = newRoom();
  const listeners: (() => void)[] = [];
  const eachListeners: ((change: Change<T>) => void)[] = [];
  let isSynced = false;
  let isWatching = false;
  let trimFailures = 0;

  const listWatch = new ListWatch({
    client,
    path,
    selection: {
      ...(labelSelector !== undefined && { labelSelector }),
      ...(fieldSelector !== undefined && { fieldSelector }),
    },
    signal: stopping.signal,
    listed,
    changed: (object, isGone) => set(object, kept(object, isGone, room)),
    isOptional,
    opened: () => {
      isWatching = true;
    },
    ended: (error) => {
      isWatching = false;
      counters.restarted(error);
    },
    idleMs,
    clock,
    log,
  });
  void listWatch.run();

  function state(): WatchState {
    if (!isSynced) return 'starting';
    if (isWatching) return 'open';
    return listWatch.isAbsent ? 'absent' : 'broken';
  }

  function listed(): Listing {
    const found = new Store<T>();
    const roomOfList = newRoom();
    return {
      add: (object) => {
        const { namespace, name } = nameOf(object);
        found.set(namespace, name, kept(object, false, roomOfList));
      },
      done: () => {
        room = roomOfList;
        isSynced = true;
        first.resolve();
        replaceAll(found);
      },
    };
  }

  function newRoom(): LargeObjects {
    return new LargeObjects(large?.maxBytes ?? Number.POSITIVE_INFINITY);
  }

  function kept(object: KubeObject, isGone: boolean, within: LargeObjects): T | undefined {
    const trimmed = isGone ? undefined : trimmedOf(object);
    if (large === undefined) return trimmed;
    const { namespace, name } = nameOf(object);
    const key = `${namespace}/${name}`;
    if (trimmed !== undefined) return within.add(key, trimmed) ? trimmed : large.instead?.(trimmed);
    within.delete(key);
    return undefined;
  }

  /** `trim`, but drops objects on which it throws. */
  function trimmedOf(object: KubeObject): T | undefined {
    try {
      return trim(object);
    } catch (error) {
      trimFailures += 1;
      // Failures 1, 2, 4, 8 and so on: there can be hundreds.
      if (Number.isInteger(Math.log2(trimFailures))) {
        const { namespace, name } = object.metadata ?? {};
        const fields = { err: error, path, namespace, name, untrimmed: trimFailures };
        log.error(fields, 'ignoring an object that cannot be read');
      }
      return undefined;
    }
  }

  function set(of: KubeObject, object: T | undefined): void {
    const { namespace, name } = nameOf(of);
    const previous = objects.set(namespace, name, object);
    notifyEach({ namespace, name, previous, object });
    notify();
  }

  function replaceAll(found: Store<T>): void {
    const before = objects;
    objects = found;
    if (eachListeners.length > 0) {
      for (const [namespace, name, object] of found.entries())
        notifyEach({ namespace, name, previous: before.get(namespace, name), object });
      for (const [namespace, name, previous] of before.entries())
        if (found.get(namespace, name) === undefined)
          notifyEach({ namespace, name, previous, object: undefined });
    }
    notify();
  }

  function notify(): void {
    for (const listener of listeners) isolated(listener);
  }

  function notifyEach(change: Change<T>): void {
    if (change.previous === undefined && change.object === undefined) return;
    for (const listener of eachListeners) isolated(() => listener(change));
  }

  function isolated(call: () => void): void {
    try {
      call();
    } catch (error) {
      log.error({ err: error, path }, 'a listener of a watch failed');
    }
  }

  return {
    get: (namespace: string, name: string): T | undefined => objects.get(namespace, name),
    /** @param namespace Default: all. */
    values: (namespace?: string): Iterable<T> => objects.values(namespace),
    get size(): number {
      return objects.size;
    },
    /** How many objects are too large for `large`. */
    get refused(): number {
      return room.refused;
    },
    /** Resolves after the first complete list; rejects with the signal's reason, or if stopped before. */
    ready: (signal: AbortSignal): Promise<void> => unlessAborted(first.promise, signal),
    onChange: (listener: () => void): void => void listeners.push(listener),
    /** Called for each object that changed, after a list too. */
    onEach: (listener: (change: Change<T>) => void): void => void eachListeners.push(listener),
    /** Whether the first list is complete, and whether a watch is open now. */
    health: () => ({ synced: isSynced, watching: isWatching }),
    /** Ends it; listeners are not called after this. */
    stop: (): void => {
      // A list of listeners that is being called ends, too.
      listeners.length = 0;
      eachListeners.length = 0;
      isWatching = false;
      counters.stop();
      stopping.abort(new Error('stopped'));
      first.reject(new Error('stopped'));
    },
  };
}

export interface NamedObject {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Starts a watch of one object by its name, which needs only the right to that name. */
export function watchNamed<T>({
  name,
  onChange,
  ...options
}: ReflectorOptions<T> & { readonly name: string; readonly onChange?: () => void }): Reflector<T> {
  const watch = startReflector<T>({ ...options, fieldSelector: `metadata.name=${name}` });
  if (onChange) watch.onChange(onChange);
  return watch;
}

function nameOf({ metadata: { namespace = '', name = '' } = {} }: KubeObject) {
  return { namespace, name };
}
