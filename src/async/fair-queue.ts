/** A queue that is first in, first out for each key, and round robin over the keys. */
export class FairQueue<Item> {
  /** The key that is next comes first. */
  readonly #byKey = new Map<string, Set<Item>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Keys with items. */
  get keys(): number {
    return this.#byKey.size;
  }

  sizeOf(key: string): number {
    return this.#byKey.get(key)?.size ?? 0;
  }

  has(key: string, item: Item): boolean {
    return this.#byKey.get(key)?.has(item) === true;
  }

  /** An item that is in the queue keeps its place. */
  add(key: string, item: Item): void {
    const items = this.#byKey.get(key) ?? new Set();
    this.#byKey.set(key, items);
    if (!items.has(item)) this.#size += 1;
    items.add(item);
  }

  delete(key: string, item: Item): void {
    const items = this.#byKey.get(key);
    if (items?.delete(item) !== true) return;
    this.#size -= 1;
    if (items.size === 0) this.#byKey.delete(key);
  }

  /** Removes the next item of a key that may go. `undefined`: there is none. */
  take(mayGo: (key: string) => boolean = () => true): Item | undefined {
    for (const [key, items] of this.#byKey) {
      if (!mayGo(key)) continue;
      const [first] = items;
      if (first === undefined) continue;
      // The key goes to the end, behind all others.
      this.#byKey.delete(key);
      this.#byKey.set(key, items);
      this.delete(key, first);
      return first;
    }
    return undefined;
  }

  clear(): void {
    this.#byKey.clear();
    this.#size = 0;
  }
}

/** All items, in turn from each key. One with several keys comes once. */
export function inTurn<Item>(items: Iterable<Item>, keysOf: (item: Item) => readonly string[]): Item[] {
  const queue = new FairQueue<Item>();
  const all = new Set<Item>();
  for (const item of items) for (const key of keysOf(item)) queue.add(key, item);
  for (let next = queue.take(); next !== undefined; next = queue.take()) all.add(next);
  return [...all];
}
