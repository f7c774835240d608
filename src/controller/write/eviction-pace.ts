/**
 * `evictionsPerMinute`, which all features of the leader share. Owners with due evictions get equal shares at
 * most: each namespace with rollouts, and all misplaced pods together.
 */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { Clock } from '../../async/clock.ts';
import type { Configuration } from '../../policy/configuration/configuration.ts';

export interface EvictionPaceOptions {
  readonly clock: Clock;
  readonly configuration: () => Pick<Configuration, 'evictionsPerMinute'>;
}

/** Rollouts are looked at every five seconds, or later if their images are slow to answer. */
const wantedMs = 30_000;
const maxOwners = 5000;

export class EvictionPace {
  readonly #options: EvictionPaceOptions;
  readonly #owners = new BoundedMap<string, { readonly askedAt: number; readonly tookAt: number }>(maxOwners);
  #tookAt = -Infinity;

  constructor(options: EvictionPaceOptions) {
    this.#options = options;
  }

  /** Takes an eviction and returns 0, or returns the milliseconds until there may be one. */
  tryTake(owner: string): number {
    const { clock, configuration } = this.#options;
    const now = clock.monotonic();
    const everyMs = 60_000 / configuration().evictionsPerMinute;
    const { tookAt = -Infinity } = this.#owners.get(owner) ?? {};
    this.#owners.set(owner, { askedAt: now, tookAt });
    const wanting = [...this.#owners.values()].filter(({ askedAt }) => now - askedAt < wantedMs).length;
    const at = Math.max(this.#tookAt + everyMs, tookAt + wanting * everyMs);
    if (at > now) return at - now;
    this.#tookAt = now;
    this.#owners.set(owner, { askedAt: now, tookAt: now });
    return 0;
  }
}
