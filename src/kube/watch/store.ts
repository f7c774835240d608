/** What a watch keeps: its objects, and how many bytes its large ones take. */
import { sizeOfJson } from '../../http/json.ts';

/** The objects of a watch, by namespace and by name. Objects without a namespace have the empty one. */
export class Store<T> {
  readonly #namespaces = new Map<string, Map<string, T>>();

  get size(): number {
    let size = 0;
    for (const names of this.#namespaces.values()) size += names.size;
    return size;
  }

  get(namespace: string, name: string): T | undefined {
    return this.#namespaces.get(namespace)?.get(name);
  }

  /** @param object `undefined` removes it. @returns the previous object */
  set(namespace: string, name: string, object: T | undefined): T | undefined {
    const names = this.#namespaces.get(namespace) ?? new Map<string, T>();
    const previous = names.get(name);
    if (object === undefined) names.delete(name);
    else names.set(name, object);
    if (names.size > 0) this.#namespaces.set(namespace, names);
    else this.#namespaces.delete(namespace);
    return previous;
  }

  /** @param namespace Default: all. */
  *values(namespace?: string): Generator<T, void> {
    if (namespace !== undefined) yield* this.#namespaces.get(namespace)?.values() ?? [];
    else for (const names of this.#namespaces.values()) yield* names.values();
  }

  *entries(): Generator<readonly [namespace: string, name: string, object: T], void> {
    for (const [namespace, names] of this.#namespaces)
      for (const [name, object] of names) yield [namespace, name, object];
  }
}

/** Objects up to this size do not count: quotas limit their number. A trimmed pod has about 5 KiB. */
const smallBytes = 8192;
/** V8's memory for a small value, without its text. */
const bytesPerValue = 48;

/**
 * A memory limit for the large objects of a watch. Anyone who may create pods can fill 1.5 MiB of each with
 * labels or affinity: without the limit, a hundred such pods exceed a heap of 256 MiB (measured). One namespace
 * gets half of the free memory, the next one half of the rest, and so on.
 */
export class LargeObjects {
  readonly #maxBytes: number;
  /** By key. */
  readonly #bytes = new Map<string, number>();
  readonly #byNamespace = new Map<string, number>();
  readonly #refused = new Set<string>();
  #used = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Number of objects without room. */
  get refused(): number {
    return this.#refused.size;
  }

  /** @returns whether there is room for the object, which replaces the one with its key (`namespace/name`) */
  add(key: string, object: unknown): boolean {
    this.delete(key);
    const bytes = bytesOf(object);
    if (bytes <= smallBytes) return true;
    const namespace = namespaceOf(key);
    const held = this.#byNamespace.get(namespace) ?? 0;
    if (held + bytes > this.#maxBytes - this.#used) {
      this.#refused.add(key);
      return false;
    }
    this.#bytes.set(key, bytes);
    this.#byNamespace.set(namespace, held + bytes);
    this.#used += bytes;
    return true;
  }

  delete(key: string): void {
    this.#refused.delete(key);
    const bytes = this.#bytes.get(key);
    if (bytes === undefined) return;
    this.#bytes.delete(key);
    this.#used -= bytes;
    const namespace = namespaceOf(key);
    const left = (this.#byNamespace.get(namespace) ?? 0) - bytes;
    if (left > 0) this.#byNamespace.set(namespace, left);
    else this.#byNamespace.delete(namespace);
  }
}

/** About the memory of an object: its text and its values. */
function bytesOf(object: unknown): number {
  const text = Buffer.from(JSON.stringify(object));
  return text.length + sizeOfJson(text).values * bytesPerValue;
}

function namespaceOf(key: string): string {
  return key.slice(0, key.indexOf('/'));
}
