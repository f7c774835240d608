/** Waits for cluster changes by watches. Shares no code with the program and survives API server restarts. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Test } from 'tap';
import type { KubeClient } from '../../../../src/kube/api/client.ts';
import type { Query } from '../../../../src/kube/api/transport.ts';
import type { KubeObject } from '../../../../src/kube/api/objects.ts';

export interface Seen<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: T;
  readonly at: number;
}

const defaultMs = 90_000;
const idleMs = 600_000;
const retryMs = 50;

export class Watched<T extends KubeObject> {
  /** By `namespace/name`, or by name for cluster-scoped objects. */
  readonly objects = new Map<string, T>();
  readonly #client: KubeClient;
  readonly #path: string;
  readonly #query: Query;
  readonly #stopping = new AbortController();
  readonly #listeners = new Set<(seen: Seen<T>) => void>();
  readonly #listed = Promise.withResolvers<void>();

  constructor(client: KubeClient, path: string, query: Query) {
    this.#client = client;
    this.#path = path;
    this.#query = query;
    void this.#run();
  }

  async listed(): Promise<void> {
    const late = (): void => this.#listed.reject(new Error(`${this.#path} cannot be listed`));
    const timer = setTimeout(late, defaultMs);
    await this.#listed.promise.finally(() => clearTimeout(timer));
  }

  onChange(listener: (seen: Seen<T>) => void): void {
    this.#listeners.add(listener);
  }

  /**
   * Waits until something is true of the objects.
   * @param found returns the result; `undefined` and `false`: not yet
   * @throws Error with `what` if it takes too long
   */
  until<R>(
    what: string,
    found: (objects: ReadonlyMap<string, T>) => R | undefined | false,
    ms = defaultMs,
  ): Promise<R> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        clearTimeout(timeout);
        this.#listeners.delete(look);
        settle();
      };
      const look = (): void => {
        try {
          const result = found(this.objects);
          if (result !== undefined && result !== false) end(() => resolve(result));
        } catch (error) {
          end(() => reject(error));
        }
      };
      const late = new Error(`not within ${ms} ms: ${what} (${this.#path})`);
      const timeout = setTimeout(() => end(() => reject(late)), ms);
      this.#listeners.add(look);
      look();
    });
  }

  close(): void {
    this.#listeners.clear();
    this.#stopping.abort(new Error('closed'));
  }

  #take(type: Seen<T>['type'], object: T): void {
    if (type === 'DELETED') this.objects.delete(keyOf(object));
    else this.objects.set(keyOf(object), object);
    const at = performance.now();
    for (const listener of this.#listeners) listener({ type, object, at });
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#follow(signal).catch(() => undefined);
      await pause(retryMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const query = this.#query;
    const page = await this.#client.get<{ metadata: { resourceVersion: string }; items: T[] }>(this.#path, {
      signal,
      query,
    });
    const found = new Map(page.items.map((item) => [keyOf(item), item]));
    for (const [key, object] of this.objects) if (!found.has(key)) this.#take('DELETED', object);
    for (const [key, object] of found) {
      const known = this.objects.get(key);
      if (known?.metadata?.resourceVersion === object.metadata?.resourceVersion) continue;
      this.#take(known ? 'MODIFIED' : 'ADDED', object);
    }
    this.#listed.resolve();
    const { resourceVersion } = page.metadata;
    const more = { ...query, watch: true, resourceVersion };
    for await (const line of this.#client.lines(this.#path, { signal, query: more, idleMs })) {
      const { type, object } = JSON.parse(line) as { type: Seen<T>['type'] | 'ERROR'; object: T };
      if (type === 'ERROR') return;
      this.#take(type, object);
    }
  }
}

/** Watches a collection such as `/api/v1/pods`. @param t the test with which it ends */
export async function watch<T extends KubeObject>(
  client: KubeClient,
  path: string,
  query: Query = {},
  t?: Test,
): Promise<Watched<T>> {
  const watched = new Watched<T>(client, path, query);
  t?.teardown(() => watched.close());
  await watched.listed();
  return watched;
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

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

export const hasCondition = (
  object: { readonly status?: { readonly conditions?: readonly Condition[] | undefined } } | undefined,
  type: string,
  status = 'True',
): boolean =>
  object?.status?.conditions?.some((each) => each.type === type && each.status === status) ?? false;

function keyOf(object: KubeObject): string {
  const { namespace, name = '' } = object.metadata ?? {};
  return namespace === undefined ? name : `${namespace}/${name}`;
}
