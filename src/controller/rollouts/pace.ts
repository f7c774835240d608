/** `evictionsPerMinute` of all rollouts. Namespaces with due evictions get equal shares at most. */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { Leading } from '../leadership/leading.ts';

/** Rollouts are looked at every five seconds, or later if their images are slow to answer. */
const wantedMs = 30_000;
const maxNamespaces = 5000;

export class Pace {
  readonly #leading: Pick<Leading, 'clock' | 'configuration'>;
  readonly #namespaces = new BoundedMap<string, { readonly askedAt: number; readonly tookAt: number }>(
    maxNamespaces,
  );
  #tookAt = -Infinity;

  constructor(leading: Pick<Leading, 'clock' | 'configuration'>) {
    this.#leading = leading;
  }

  /** Takes an eviction and returns 0, or returns the milliseconds until there may be one. */
  tryTake(namespace: string): number {
    const { clock, configuration } = this.#leading;
    const now = clock.monotonic();
    const everyMs = 60_000 / configuration().evictionsPerMinute;
    const { tookAt = -Infinity } = this.#namespaces.get(namespace) ?? {};
    this.#namespaces.set(namespace, { askedAt: now, tookAt });
    const wanting = [...this.#namespaces.values()].filter(({ askedAt }) => now - askedAt < wantedMs).length;
    const at = Math.max(this.#tookAt + everyMs, tookAt + wanting * everyMs);
    if (at > now) return at - now;
    this.#tookAt = now;
    this.#namespaces.set(namespace, { askedAt: now, tookAt: now });
    return 0;
  }
}
