/**
 * The objects of the store (each write creates a new one), their versions, and the change log for watches.
 */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { KubeObject, ObjectMeta } from '../../../src/kube/api/objects.ts';
import type { Target } from './paths.ts';

export interface StoredObject extends KubeObject {
  readonly metadata: ObjectMeta & {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly finalizers?: readonly string[];
    readonly generation?: number;
  };
  readonly spec?: unknown;
  readonly status?: unknown;
}

export interface StoreChange {
  readonly version: number;
  readonly collection: string;
  readonly namespace: string;
  readonly before: StoredObject | undefined;
  readonly after: StoredObject | undefined;
  readonly name: string;
}

/** The first version. 0 and 1 are never real ones. */
const firstVersion = 1000;

export const timestamp = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');

export class Objects {
  readonly #now: () => number;
  readonly #collections = new Map<string, Map<string, StoredObject>>();
  readonly #listeners: ((change: StoreChange) => void)[] = [];
  #log: StoreChange[] = [];
  #oldest = firstVersion;
  #version = firstVersion;

  constructor(now: () => number) {
    this.#now = now;
  }

  get(target: Target): StoredObject | undefined {
    return this.#collection(target).get(keyOf(target));
  }

  list(target: Pick<Target, 'collection' | 'namespace'>): StoredObject[] {
    return [...this.#collection(target)]
      .filter(([key]) => target.namespace === '' || key.startsWith(`${target.namespace}/`))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, object]) => object);
  }

  /** Stores an object unchanged, apart from missing uid, version and creation time. */
  put(target: Target, object: object): StoredObject {
    const given = object as Partial<StoredObject>;
    const before = this.get(target);
    if (before && isDeepStrictEqual(before, object)) return before;
    this.#version++;
    const isOtherSpec = before !== undefined && !isDeepStrictEqual(before.spec, given.spec);
    const stored: StoredObject = {
      apiVersion: target.apiVersion,
      ...given,
      metadata: {
        creationTimestamp: timestamp(this.#now()),
        uid: before?.metadata.uid ?? randomUUID(),
        ...given.metadata,
        name: target.name,
        ...(target.namespace !== '' && { namespace: target.namespace }),
        generation: (before?.metadata.generation ?? (before ? 1 : 0)) + (isOtherSpec || !before ? 1 : 0),
        resourceVersion: String(this.#version),
      },
    };
    this.#collection(target).set(keyOf(target), stored);
    this.#tell(target, before, stored);
    return stored;
  }

  remove(target: Target): StoredObject | undefined {
    const before = this.get(target);
    if (before === undefined) return undefined;
    this.#version++;
    this.#collection(target).delete(keyOf(target));
    this.#tell(target, before, undefined);
    return before;
  }

  version(): number {
    return this.#version;
  }

  /** Changes after a version; `undefined` if they were dropped. */
  since(version: number): readonly StoreChange[] | undefined {
    return version < this.#oldest ? undefined : this.#log.filter((change) => change.version > version);
  }

  compact(): void {
    this.#version++;
    this.#oldest = this.#version;
    this.#log = [];
  }

  onChange(listener: (change: StoreChange) => void): void {
    this.#listeners.push(listener);
  }

  #collection({ collection: name }: Pick<Target, 'collection'>): Map<string, StoredObject> {
    const found = this.#collections.get(name) ?? new Map<string, StoredObject>();
    this.#collections.set(name, found);
    return found;
  }

  #tell(target: Target, before: StoredObject | undefined, after: StoredObject | undefined): void {
    const { collection, namespace, name } = target;
    const change = { version: this.#version, collection, namespace, name, before, after };
    this.#log.push(change);
    for (const listener of this.#listeners) listener(change);
  }
}

function keyOf({ namespace, name }: Target): string {
  return `${namespace}/${name}`;
}
