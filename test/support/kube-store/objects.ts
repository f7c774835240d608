/**
 * The objects of the store, their versions, and the log of changes that watches read. Objects are never changed in place:
 * each write makes a new one.
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

/** One change; a watch makes its events of these. */
export interface StoreChange {
  readonly version: number;
  readonly collection: string;
  readonly namespace: string;
  readonly before: StoredObject | undefined;
  /** What there is now, or undefined after a deletion. */
  readonly after: StoredObject | undefined;
  /** The object as an event shows it: after a deletion the last state with the version of the deletion. */
  readonly shown: StoredObject;
}

export interface Objects {
  get(target: Target): StoredObject | undefined;
  list(target: Pick<Target, 'collection' | 'namespace'>): StoredObject[];
  /** Stores an object as it is, with a uid, a version and a time of creation where it has none. */
  put(target: Target, object: object): StoredObject;
  remove(target: Target): StoredObject | undefined;
  version(): number;
  /** Changes after a version; undefined where they are forgotten. */
  since(version: number): readonly StoreChange[] | undefined;
  /** Forgets the log. */
  compact(): void;
  onChange(listener: (change: StoreChange) => void): void;
}

/** Versions start here, so that 0 and 1 are surely no real ones. */
const firstVersion = 1000;

export function createObjects(now: () => number): Objects {
  const collections = new Map<string, Map<string, StoredObject>>();
  const listeners: ((change: StoreChange) => void)[] = [];
  let log: StoreChange[] = [];
  let oldest = firstVersion;
  let version = firstVersion;

  function collection(name: string): Map<string, StoredObject> {
    const found = collections.get(name) ?? new Map<string, StoredObject>();
    collections.set(name, found);
    return found;
  }

  function tell(target: Target, before: StoredObject | undefined, after: StoredObject | undefined): void {
    const last = after ?? before;
    if (last === undefined) return;
    const shown = { ...last, metadata: { ...last.metadata, resourceVersion: String(version) } };
    const { collection, namespace } = target;
    const change = { version, collection, namespace, before, after, shown };
    log.push(change);
    for (const listener of listeners) listener(change);
  }

  function put(target: Target, object: object): StoredObject {
    const given = object as Partial<StoredObject>;
    const before = collection(target.collection).get(keyOf(target));
    if (before && isDeepStrictEqual(before, object)) return before;
    version++;
    const isOtherSpec = before !== undefined && !isDeepStrictEqual(before.spec, given.spec);
    const stored: StoredObject = {
      apiVersion: target.apiVersion,
      ...given,
      metadata: {
        creationTimestamp: new Date(now()).toISOString().replace(/\.\d+Z$/, 'Z'),
        uid: before?.metadata.uid ?? randomUUID(),
        ...given.metadata,
        name: target.name,
        ...(target.namespace !== '' && { namespace: target.namespace }),
        generation: (before?.metadata.generation ?? (before ? 1 : 0)) + (isOtherSpec || !before ? 1 : 0),
        resourceVersion: String(version),
      },
    };
    collection(target.collection).set(keyOf(target), stored);
    tell(target, before, stored);
    return stored;
  }

  return {
    get: (target) => collection(target.collection).get(keyOf(target)),
    list: (target) =>
      [...collection(target.collection)]
        .filter(([key]) => target.namespace === '' || key.startsWith(`${target.namespace}/`))
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([, object]) => object),
    put,
    remove: (target) => {
      const before = collection(target.collection).get(keyOf(target));
      if (before === undefined) return undefined;
      version++;
      collection(target.collection).delete(keyOf(target));
      tell(target, before, undefined);
      return before;
    },
    version: () => version,
    since: (from) => (from < oldest ? undefined : log.filter((change) => change.version > from)),
    compact: () => {
      version++;
      oldest = version;
      log = [];
    },
    onChange: (listener) => {
      listeners.push(listener);
    },
  };
}

function keyOf({ namespace, name }: Target): string {
  return `${namespace}/${name}`;
}
