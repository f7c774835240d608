import type { Change, Reflector } from '../../../../src/kube/watch/reflector.ts';

/** A reflector that the model fills. */
export class ModelCache<T> implements Reflector<T> {
  readonly #objects = new Map<string, T>();
  readonly #listeners: ((change: Change<T>) => void)[] = [];
  readonly #namespace: string;
  readonly refused = 0;

  constructor(namespace: string) {
    this.#namespace = namespace;
  }
  get size(): number {
    return this.#objects.size;
  }
  get(_: string, name: string): T | undefined {
    return this.#objects.get(name);
  }
  values(): Iterable<T> {
    return this.#objects.values();
  }
  set(name: string, object: T | undefined): void {
    const previous = this.#objects.get(name);
    if (object === undefined) this.#objects.delete(name);
    else this.#objects.set(name, object);
    for (const listener of this.#listeners) listener({ namespace: this.#namespace, name, object, previous });
  }
  onEach(listener: (change: Change<T>) => void): void {
    this.#listeners.push(listener);
  }
  onChange(): void {}
  ready = (): Promise<void> => Promise.resolve();
  health = () => ({ synced: true, watching: true });
  stop(): void {}
}
