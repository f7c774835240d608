/** The objects that a reflector keeps, and the listeners that hear of their changes. */

/** One object that is new, changed or gone. */
export interface Change<T> {
  readonly namespace: string;
  readonly name: string;
  /** `undefined`: it is gone, or `trim` does not keep it any more. */
  readonly object: T | undefined;
  /** `undefined`: it is new. */
  readonly previous: T | undefined;
}

export class Store<T> {
  #objects = new Map<string, T>();
  readonly #listeners: (() => void)[] = [];
  readonly #eachListeners: ((change: Change<T>) => void)[] = [];
  readonly #onError: (error: unknown) => void;

  /** @param onError hears what a listener threw; the other listeners still run */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  get(namespace: string, name: string): T | undefined {
    return this.#objects.get(`${namespace}/${name}`);
  }

  values(): Iterable<T> {
    return this.#objects.values();
  }

  get size(): number {
    return this.#objects.size;
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  onEach(listener: (change: Change<T>) => void): void {
    this.#eachListeners.push(listener);
  }

  /**
   * Sets one object, or removes it.
   * @param key `namespace/name`
   */
  set(key: string, object: T | undefined): void {
    const previous = this.#objects.get(key);
    if (object === undefined) this.#objects.delete(key);
    else this.#objects.set(key, object);
    this.#notifyEach(key, previous, object);
    this.#notify();
  }

  replaceAll(objects: Map<string, T>): void {
    const before = this.#objects;
    this.#objects = objects;
    if (this.#eachListeners.length > 0) {
      for (const [key, object] of objects) this.#notifyEach(key, before.get(key), object);
      for (const [key, previous] of before) {
        if (!objects.has(key)) this.#notifyEach(key, previous, undefined);
      }
    }
    this.#notify();
  }

  /** No listener hears anything after this. */
  close(): void {
    this.#listeners.length = 0;
    this.#eachListeners.length = 0;
  }

  #notify(): void {
    for (const listener of this.#listeners) this.#isolated(listener);
  }

  #notifyEach(key: string, previous: T | undefined, object: T | undefined): void {
    if (previous === undefined && object === undefined) return;
    const [namespace = '', name = ''] = key.split('/');
    for (const listener of this.#eachListeners) {
      this.#isolated(() => listener({ namespace, name, object, previous }));
    }
  }

  #isolated(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#onError(error);
    }
  }
}
