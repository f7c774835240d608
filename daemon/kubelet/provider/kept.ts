/**
 * Values that cost a request, kept for a while: whoever asks while one is fetched shares it, a failure is not kept, and the oldest
 * leave first.
 */
import type { Clock } from '../../../src/async/clock.ts';

export interface Kept<T> {
  /**
   * The kept value, or a new one.
   * @param fetch gives the value, and for how many milliseconds from when it was called it can be used
   * @throws what `fetch` throws
   */
  get(key: string, fetch: () => Promise<{ readonly value: T; readonly forMs: number }>): Promise<T>;
  forget(key: string): void;
  readonly size: number;
}

interface Entry<T> {
  readonly value: Promise<T>;
  until: number;
}

/** Makes an empty one that keeps this many values at most. */
export function createKept<T>(clock: Clock, maxEntries: number): Kept<T> {
  const entries = new Map<string, Entry<T>>();

  return {
    get: (key, fetch) => {
      const present = entries.get(key);
      const now = clock.monotonic();
      if (present !== undefined && now < present.until) return present.value;
      const value = fetch().then(
        ({ value: fetched, forMs }) => {
          entry.until = now + forMs;
          return fetched;
        },
        (error: unknown) => {
          if (entries.get(key) === entry) entries.delete(key);
          throw error;
        },
      );
      const entry: Entry<T> = { value, until: Infinity };
      entries.delete(key);
      entries.set(key, entry);
      const [oldest] = entries.keys();
      if (entries.size > maxEntries && oldest !== undefined) entries.delete(oldest);
      return value;
    },
    forget: (key) => void entries.delete(key),
    get size() {
      return entries.size;
    },
  };
}
