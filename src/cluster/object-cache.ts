/** Objects got by name from the API server and cached, absent ones too. */
import type { Clock } from '../async/clock.ts';
import { LoadingCache, type Loaded } from '../async/loading-cache.ts';
import { unlessAborted } from '../async/wait.ts';
import type { Counter } from '../telemetry/metrics.ts';

export interface ObjectCacheOptions<T> {
  readonly load: (namespace: string, name: string, signal: AbortSignal) => Promise<T | undefined>;
  readonly keepMs: number;
  /** Bytes of a value in memory. Default: 0. */
  readonly sizeOf?: (value: T) => number;
  readonly clock: Clock;
  readonly counts: { readonly found: Counter; readonly missing: Counter; readonly failed: Counter };
}

/** The API server answers a GET by name within milliseconds. */
const loadTimeoutMs = 5000;

/** As many as the pods of a large cluster name at a time. */
const maxEntries = 1000;

/** A Secret may have 1 MiB; real pull secrets have 1 KiB, and 1000 of those fit many times. */
const maxBytes = 16 * 1024 * 1024;

/** Puts a cache in front of `load`. A caller whose signal aborts stops waiting; the request goes on for the next caller. */
export function createObjectCache<T>(options: ObjectCacheOptions<T>): ObjectCacheOptions<T>['load'] {
  const { clock, counts, keepMs, sizeOf = () => 0 } = options;
  const cache = new LoadingCache<T | undefined>({
    clock,
    maxEntries,
    size: { bytesOf: (value) => (value === undefined ? 0 : sizeOf(value)), maxBytes },
  });

  async function load(namespace: string, name: string): Promise<Loaded<T | undefined>> {
    try {
      const value = await options.load(namespace, name, AbortSignal.timeout(loadTimeoutMs));
      (value === undefined ? counts.missing : counts.found).inc();
      return { value, expiresAt: clock.monotonic() + keepMs };
    } catch (error) {
      counts.failed.inc();
      throw error;
    }
  }

  return (namespace, name, signal) =>
    unlessAborted(
      cache.get(`${namespace}/${name}`, () => load(namespace, name)),
      signal,
    );
}
