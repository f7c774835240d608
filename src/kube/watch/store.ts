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
