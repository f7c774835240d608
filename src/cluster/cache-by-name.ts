/**
 * Objects got by name from the API server, kept for a while. Concurrent askers share one request, which goes on when
 * one of them stops waiting, so that the next finds its answer. What does not exist is remembered too; a failure is not.
 */
import type { Clock } from '../async/clock.ts';
import type { Counter } from '../telemetry/metrics.ts';

export interface CacheByName<T> {
  /** @throws whatever `load` throws, or the signal's reason when the asker stops waiting */
  get(namespace: string, name: string, signal: AbortSignal): Promise<T | undefined>;
}

export interface ByNameOptions<T> {
  readonly load: (namespace: string, name: string, signal: AbortSignal) => Promise<T | undefined>;
  readonly keepMs: number;
  /** Bytes of a value in memory; 0 where it is left out. */
  readonly sizeOf?: (value: T) => number;
  /** What all kept values together may have; the oldest leave first. */
  readonly maxBytes?: number;
  readonly clock: Clock;
  readonly counts?: { readonly found: Counter; readonly missing: Counter; readonly failed: Counter };
}

/** The API server answers a GET by name within milliseconds; whoever waited for it has given up long before. */
const loadTimeoutMs = 5000;

/** As many as the pods of a large cluster name at a time. */
const maxEntries = 1000;

/** Whoever may create Secrets can make each 1 MiB large; real pull secrets have 1 KiB, and 1000 of those fit many times. */
const defaultMaxBytes = 16 * 1024 * 1024;

interface Kept<T> {
  readonly value: Promise<T | undefined>;
  expires: number;
  /** 0 until it is there. */
  bytes: number;
}

/** Makes an empty store in front of `load`. */
export function createCacheByName<T>(options: ByNameOptions<T>): CacheByName<T> {
  const { clock, counts, sizeOf = () => 0, maxBytes = defaultMaxBytes } = options;
  const kept = new Map<string, Kept<T>>();
  let bytes = 0;

  function drop(key: string): void {
    bytes -= kept.get(key)?.bytes ?? 0;
    kept.delete(key);
  }

  function settle(entry: Kept<T>, value: T | undefined): void {
    entry.expires = clock.monotonic() + options.keepMs;
    // An entry that left and came back while it was asked for is settled twice.
    bytes -= entry.bytes;
    entry.bytes = value === undefined ? 0 : sizeOf(value);
    bytes += entry.bytes;
    for (const key of kept.keys()) {
      if (bytes <= maxBytes) return;
      drop(key);
    }
  }

  async function load(key: string, namespace: string, name: string): Promise<T | undefined> {
    try {
      const value = await options.load(namespace, name, AbortSignal.timeout(loadTimeoutMs));
      const entry = kept.get(key);
      if (entry) settle(entry, value);
      (value === undefined ? counts?.missing : counts?.found)?.inc();
      return value;
    } catch (error) {
      drop(key);
      counts?.failed.inc();
      throw error;
    }
  }

  return {
    get: (namespace, name, signal) => {
      const key = `${namespace}/${name}`;
      let entry = kept.get(key);
      if (entry === undefined || entry.expires <= clock.monotonic()) {
        drop(key);
        entry = { value: load(key, namespace, name), expires: Infinity, bytes: 0 };
        kept.set(key, entry);
        const oldest = kept.size > maxEntries ? kept.keys().next().value : undefined;
        if (oldest !== undefined) drop(oldest);
      }
      return whileWaiting(entry.value, signal);
    },
  };
}

/**
 * The promise's outcome, unless the signal aborts first; the promise is left to go on.
 * @throws the promise's error or the signal's reason
 */
export function whileWaiting<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}
