/**
 * A cache that loads what it lacks. Callers that need the same key at the same time share one load, a failed
 * load is not kept, and the least recently used entries leave first.
 */
import { BoundedMap } from './bounded-map.ts';
import type { Clock } from './clock.ts';

export interface Loaded<Value> {
  readonly value: Value;
  /** Monotonic time in milliseconds from which the value is loaded again. */
  readonly expiresAt: number;
}

export interface LoadingCacheOptions<Value> {
  readonly clock: Clock;
  readonly maxEntries: number;
  /** Bytes of a value, and the bound of all together. A larger value is returned but not kept. */
  readonly size?: { readonly bytesOf: (value: Value) => number; readonly maxBytes: number };
}

interface Entry<Value> {
  readonly value: Promise<Value>;
  expiresAt: number;
  /** 0 while it loads. */
  bytes: number;
}

export class LoadingCache<Value> {
  readonly #entries: BoundedMap<string, Entry<Value>>;
  readonly #options: LoadingCacheOptions<Value>;
  #bytes = 0;

  constructor(options: LoadingCacheOptions<Value>) {
    this.#options = options;
    this.#entries = new BoundedMap(options.maxEntries, (entry) => (this.#bytes -= entry.bytes));
  }

  /** The cached value, or a new one. @throws what `load` throws */
  get(key: string, load: () => Promise<Loaded<Value>>): Promise<Value> {
    const present = this.#entries.get(key);
    if (present !== undefined && this.#options.clock.monotonic() < present.expiresAt) return present.value;
    this.delete(key);
    const entry: Entry<Value> = {
      value: load().then(
        (loaded) => this.#settle(key, entry, loaded),
        (error: unknown) => {
          if (this.#entries.peek(key) === entry) this.delete(key);
          throw error;
        },
      ),
      expiresAt: Infinity,
      bytes: 0,
    };
    this.#entries.set(key, entry);
    return entry.value;
  }

  delete(key: string): void {
    this.#bytes -= this.#entries.peek(key)?.bytes ?? 0;
    this.#entries.delete(key);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** An entry that was replaced while it loaded counts for nothing. */
  #settle(key: string, entry: Entry<Value>, { value, expiresAt }: Loaded<Value>): Value {
    entry.expiresAt = expiresAt;
    const { size } = this.#options;
    if (size !== undefined && this.#entries.peek(key) === entry) {
      entry.bytes = size.bytesOf(value);
      this.#bytes += entry.bytes;
      if (entry.bytes > size.maxBytes) this.delete(key);
      for (const oldest of this.#entries.keys()) {
        if (this.#bytes <= size.maxBytes) break;
        this.delete(oldest);
      }
    }
    return value;
  }
}
