/**
 * Back-off after failed runs of a plugin, for each image. The kubelet does not need it: it runs plugins for the pods of one node and
 * waits between its own attempts, while an agent answers for many nodes. The durations are those of `ImagePullBackOff`, so plugins
 * run no more often than in the kubelet.
 */
import { BoundedMap } from '../../../src/async/bounded-map.ts';
import type { Clock } from '../../../src/async/clock.ts';
import type { PluginError } from '../run/plugin-error.ts';

export interface Failure {
  readonly image: string;
  readonly error: PluginError;
}

const firstMs = 10_000;
/** A hanging plugin occupies the concurrency limit for a minute. */
const firstAfterTimeoutMs = 60_000;
const longestMs = 300_000;

/** More than the failing images of a cluster. */
const maxKeys = 1000;

export class PluginBackOff {
  readonly #clock: Clock;
  /** Oldest failure first. */
  readonly #failures = new BoundedMap<string, Failure & { readonly until: number; readonly ms: number }>(
    maxKeys,
  );

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The failure of a key that is backed off; `undefined` if the plugin may run. */
  current(key: string): PluginError | undefined {
    const failure = this.#failures.peek(key);
    return failure !== undefined && this.#clock.monotonic() < failure.until ? failure.error : undefined;
  }

  failed(key: string, { image, error }: Failure): void {
    const first = error.code === 'timeout' ? firstAfterTimeoutMs : firstMs;
    const before = this.#failures.peek(key)?.ms ?? 0;
    const ms = Math.min(Math.max(first, before * 2), longestMs);
    this.#failures.set(key, { image, error, ms, until: this.#clock.monotonic() + ms });
  }

  succeeded(key: string): void {
    this.#failures.delete(key);
  }

  /** The latest failure without a later success for the same key. */
  latest(): Failure | undefined {
    return [...this.#failures.values()].at(-1);
  }
}
