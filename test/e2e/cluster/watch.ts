/**
 * Waits for changes in a cluster by watching it: conditions are checked with each change, never after a pause. It shares no code with the
 * program's caches, and survives restarts of the API server.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { KubeClient } from '../../../src/kube/api/client.ts';
import type { Query } from '../../../src/kube/api/transport.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';

export interface Seen<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: T;
  /** `performance.now()` when it arrived. */
  readonly at: number;
}

export interface Watched<T> {
  /** By `namespace/name`, or by name for cluster-scoped objects. */
  readonly objects: ReadonlyMap<string, T>;
  /** Calls the listener with each change after it is in `objects`. */
  onChange(listener: (seen: Seen<T>) => void): void;
  /**
   * Waits until something is true of the objects.
   * @param found returns the result; `undefined` and `false`: not yet
   * @throws Error with `what` if it takes too long
   */
  until<R>(
    what: string,
    found: (objects: ReadonlyMap<string, T>) => R | undefined | false,
    ms?: number,
  ): Promise<R>;
  close(): void;
}

/** Enough for a loaded machine. */
const defaultMs = 30_000;
const idleMs = 600_000;
const retryMs = 50;

/** Watches a collection such as `/api/v1/pods`. Resolves when it has been listed once. */
export async function watch<T extends KubeObject>(
  client: KubeClient,
  path: string,
  query: Query = {},
): Promise<Watched<T>> {
  const stopping = new AbortController();
  const objects = new Map<string, T>();
  const listeners = new Set<(seen: Seen<T>) => void>();
  const listed = Promise.withResolvers<void>();

  function take(type: Seen<T>['type'], object: T): void {
    const key = keyOf(object);
    if (type === 'DELETED') objects.delete(key);
    else objects.set(key, object);
    const at = performance.now();
    for (const listener of listeners) listener({ type, object, at });
  }

  async function follow(): Promise<void> {
    const page = await client.get<{ metadata: { resourceVersion: string }; items: T[] }>(path, {
      signal: stopping.signal,
      query,
    });
    const found = new Map(page.items.map((item) => [keyOf(item), item]));
    for (const [key, object] of objects) if (!found.has(key)) take('DELETED', object);
    for (const [key, object] of found) {
      const known = objects.get(key);
      if (known?.metadata?.resourceVersion === object.metadata?.resourceVersion) continue;
      take(known ? 'MODIFIED' : 'ADDED', object);
    }
    listed.resolve();
    const { resourceVersion } = page.metadata;
    const lines = client.lines(path, {
      signal: stopping.signal,
      query: { ...query, watch: true, resourceVersion },
      idleMs,
    });
    for await (const line of lines) {
      const { type, object } = JSON.parse(line) as { type: Seen<T>['type'] | 'ERROR'; object: T };
      if (type === 'ERROR') return;
      take(type, object);
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await follow().catch(() => undefined);
      await pause(retryMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }
  void run();
  const timer = setTimeout(() => listed.reject(new Error(`${path} cannot be listed`)), defaultMs);
  await listed.promise.finally(() => clearTimeout(timer));

  return {
    objects,
    onChange: (listener) => void listeners.add(listener),
    until: (what, found, ms = defaultMs) =>
      new Promise((resolve, reject) => {
        const end = (settle: () => void): void => {
          clearTimeout(timeout);
          listeners.delete(look);
          settle();
        };
        const look = (): void => {
          try {
            const result = found(objects);
            if (result !== undefined && result !== false) end(() => resolve(result));
          } catch (error) {
            end(() => reject(error));
          }
        };
        const timeout = setTimeout(
          () => end(() => reject(new Error(`not within ${ms} ms: ${what} (${path})`))),
          ms,
        );
        listeners.add(look);
        look();
      }),
    close: () => {
      listeners.clear();
      stopping.abort(new Error('closed'));
    },
  };
}

/**
 * Waits for one object.
 * @param path of the object, such as `/api/v1/namespaces/default/pods/web`
 * @param isIt gets the object, or `undefined` if it does not exist
 * @returns the object at that time
 * @throws Error with the current object if it takes too long
 */
export async function waitFor<T extends KubeObject>(
  client: KubeClient,
  path: string,
  isIt: (object: T | undefined) => boolean,
  ms = defaultMs,
): Promise<T | undefined> {
  const at = path.lastIndexOf('/');
  const name = path.slice(at + 1);
  const watched = await watch<T>(client, path.slice(0, at), { fieldSelector: `metadata.name=${name}` });
  const only = (): T | undefined => [...watched.objects.values()][0];
  try {
    await watched.until(name, () => isIt(only()), ms);
    return only();
  } catch (error) {
    throw new Error(`${(error as Error).message}; it is now ${JSON.stringify(only())}`, { cause: error });
  } finally {
    watched.close();
  }
}

function keyOf(object: KubeObject): string {
  const { namespace, name = '' } = object.metadata ?? {};
  return namespace === undefined ? name : `${namespace}/${name}`;
}
