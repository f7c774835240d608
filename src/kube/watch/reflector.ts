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

export function startReflector<T>(options: ReflectorOptions<T>): Reflector<T> {
  return new ListReflector(options);
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

export type Reflector<T> = Pick<ListReflector<T>, keyof ListReflector<T>>;

class ListReflector<T> {
  readonly #options: ReflectorOptions<T>;
  readonly #counters: ReturnType<typeof watchMetrics>;
  readonly #stopping = new AbortController();
  readonly #first = Promise.withResolvers<void>();
  readonly #listWatch: ListWatch;
  #objects = new Store<T>();
  #large: LargeObjects;
  #listeners: (() => void)[] = [];
  #eachListeners: ((change: Change<T>) => void)[] = [];
  #synced = false;
  #watching = false;
  #trimFailures = 0;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    const { client, path, labelSelector, fieldSelector, isOptional = false } = options;
    const { log, clock = systemClock } = options;
    this.#large = this.#newLarge();
    this.#counters = watchMetrics(options.metrics, path, () => this.#state());
    // It may be stopped without a waiting caller.
    this.#first.promise.catch(() => undefined);
    this.#listWatch = new ListWatch({
      client,
      path,
      selection: {
        ...(labelSelector !== undefined && { labelSelector }),
        ...(fieldSelector !== undefined && { fieldSelector }),
      },
      signal: this.#stopping.signal,
      listed: () => this.#listed(),
      changed: (object, isGone) => this.#set(object, this.#kept(object, isGone, this.#large)),
      isOptional,
      opened: () => {
        this.#watching = true;
      },
      ended: (error) => {
        this.#watching = false;
        this.#counters.restarted(error);
      },
      idleMs: options.idleMs ?? (() => usualIdleMs),
      clock,
      log,
    });
    void this.#listWatch.run();
  }

  get(namespace: string, name: string): T | undefined {
    return this.#objects.get(namespace, name);
  }

  /** @param namespace Default: all. */
  values(namespace?: string): Iterable<T> {
    return this.#objects.values(namespace);
  }

  get size(): number {
    return this.#objects.size;
  }

  /** How many objects are too large for `large`. */
  get refused(): number {
    return this.#large.refused;
  }

  /** Resolves after the first complete list; rejects with the signal's reason, or if stopped before. */
  ready(signal: AbortSignal): Promise<void> {
    return unlessAborted(this.#first.promise, signal);
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Called for each object that changed, after a list too. */
  onEach(listener: (change: Change<T>) => void): void {
    this.#eachListeners.push(listener);
  }

  /** Whether the first list is complete, and whether a watch is open now. */
  health() {
    return { synced: this.#synced, watching: this.#watching };
  }

  /** Ends it; listeners are not called after this. */
  stop(): void {
    // A list of listeners that is being called ends, too.
    this.#listeners.length = 0;
    this.#eachListeners.length = 0;
    this.#watching = false;
    this.#counters.stop();
    this.#stopping.abort(new Error('stopped'));
    this.#first.reject(new Error('stopped'));
  }

  #state(): WatchState {
    if (!this.#synced) return 'starting';
    if (this.#watching) return 'open';
    return this.#listWatch.isAbsent ? 'absent' : 'broken';
  }

  #listed(): Listing {
    const found = new Store<T>();
    const large = this.#newLarge();
    return {
      add: (object) => {
        const { namespace, name } = nameOf(object);
        found.set(namespace, name, this.#kept(object, false, large));
      },
      done: () => {
        this.#large = large;
        this.#synced = true;
        this.#first.resolve();
        this.#replaceAll(found);
      },
    };
  }

  #newLarge(): LargeObjects {
    return new LargeObjects(this.#options.large?.maxBytes ?? Number.POSITIVE_INFINITY);
  }

  #kept(object: KubeObject, isGone: boolean, room: LargeObjects): T | undefined {
    const trimmed = isGone ? undefined : this.#trim(object);
    const { large } = this.#options;
    if (large === undefined) return trimmed;
    const { namespace, name } = nameOf(object);
    const key = `${namespace}/${name}`;
    if (trimmed !== undefined) return room.add(key, trimmed) ? trimmed : large.instead?.(trimmed);
    room.delete(key);
    return undefined;
  }

  /** `trim`, but drops objects on which it throws. */
  #trim(object: KubeObject): T | undefined {
    const { trim, path, log } = this.#options;
    try {
      return trim(object);
    } catch (error) {
      this.#trimFailures += 1;
      // Failures 1, 2, 4, 8 and so on: there can be hundreds.
      if (Number.isInteger(Math.log2(this.#trimFailures))) {
        const { namespace, name } = object.metadata ?? {};
        const fields = { err: error, path, namespace, name, untrimmed: this.#trimFailures };
        log.error(fields, 'ignoring an object that cannot be read');
      }
      return undefined;
    }
  }

  #set(of: KubeObject, object: T | undefined): void {
    const { namespace, name } = nameOf(of);
    const previous = this.#objects.set(namespace, name, object);
    this.#notifyEach({ namespace, name, previous, object });
    this.#notify();
  }

  #replaceAll(objects: Store<T>): void {
    const before = this.#objects;
    this.#objects = objects;
    if (this.#eachListeners.length > 0) {
      for (const [namespace, name, object] of objects.entries())
        this.#notifyEach({ namespace, name, previous: before.get(namespace, name), object });
      for (const [namespace, name, previous] of before.entries())
        if (objects.get(namespace, name) === undefined)
          this.#notifyEach({ namespace, name, previous, object: undefined });
    }
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) this.#isolated(listener);
  }

  #notifyEach(change: Change<T>): void {
    if (change.previous === undefined && change.object === undefined) return;
    for (const listener of this.#eachListeners) this.#isolated(() => listener(change));
  }

  #isolated(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#options.log.error({ err: error, path: this.#options.path }, 'a listener of a watch failed');
    }
  }
}

function nameOf({ metadata: { namespace = '', name = '' } = {} }: KubeObject) {
  return { namespace, name };
}
