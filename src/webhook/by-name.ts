/**
 * Objects got by name from the API server, kept for a while. Concurrent askers share one request, which goes on when
 * one of them stops waiting, so that the next finds its answer. What does not exist is remembered too; a failure is not.
 */
import type { Clock } from '../telemetry/clock.ts';
import type { Count } from '../telemetry/metrics.ts';

export interface ByName<T> {
  /** @throws whatever `load` throws, or the signal's reason when the asker stops waiting */
  get(namespace: string, name: string, signal: AbortSignal): Promise<T | undefined>;
}

export interface ByNameOptions<T> {
  readonly load: (namespace: string, name: string, signal: AbortSignal) => Promise<T | undefined>;
  readonly keepMs: number;
  readonly clock: Clock;
  readonly counts?: { readonly found: Count; readonly missing: Count; readonly failed: Count };
}

/** The API server answers a GET by name within milliseconds; whoever waited for it has given up long before. */
const loadTimeoutMs = 5000;

/** At 1 MiB, the largest a Secret can be, this many would be too much; real pull secrets are below 1 KiB. */
const maxEntries = 1000;

interface Kept<T> {
  readonly value: Promise<T | undefined>;
  expires: number;
}

export function keepByName<T>(options: ByNameOptions<T>): ByName<T> {
  const { clock, counts } = options;
  const kept = new Map<string, Kept<T>>();

  async function load(key: string, namespace: string, name: string): Promise<T | undefined> {
    try {
      const value = await options.load(namespace, name, AbortSignal.timeout(loadTimeoutMs));
      const entry = kept.get(key);
      if (entry) entry.expires = clock.monotonic() + options.keepMs;
      (value === undefined ? counts?.missing : counts?.found)?.inc();
      return value;
    } catch (error) {
      kept.delete(key);
      counts?.failed.inc();
      throw error;
    }
  }

  return {
    get: (namespace, name, signal) => {
      const key = `${namespace}/${name}`;
      let entry = kept.get(key);
      if (entry === undefined || entry.expires <= clock.monotonic()) {
        kept.delete(key);
        entry = { value: load(key, namespace, name), expires: Infinity };
        kept.set(key, entry);
        const oldest = kept.size > maxEntries ? kept.keys().next().value : undefined;
        if (oldest !== undefined) kept.delete(oldest);
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
