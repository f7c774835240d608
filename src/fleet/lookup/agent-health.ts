/**
 * Agents that fail are backed off, longer with each failure in a row, so that a dead node costs one attempt
 * now and then instead of one per lookup.
 */
import { backOffMs } from '../../async/back-off.ts';
import type { Clock } from '../../async/clock.ts';

const backOff = { firstMs: 1000, mostMs: 30_000 };
/** Any agent is slow if its registry is; several times in a row it is a sign of a node that is gone. */
const maxSlow = 3;

interface Health {
  failures: number;
  slow: number;
  backedOffUntil: number;
}

export class AgentHealth {
  readonly #clock: Clock;
  readonly #byUrl = new Map<string, Health>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The agent could not be reached, lost the connection or was overloaded. */
  failed(url: string): void {
    const health = this.#of(url);
    const now = this.#clock.monotonic();
    // Lookups that were under way together fail together; they are one failure.
    if (health.backedOffUntil > now) return;
    health.failures += 1;
    health.slow = 0;
    health.backedOffUntil = now + backOffMs(backOff, health.failures);
  }

  /** The agent did not answer in time, or a later request to another agent was answered first. */
  slow(url: string): void {
    const health = this.#of(url);
    health.slow += 1;
    if (health.slow >= maxSlow) this.failed(url);
  }

  answered(url: string): void {
    this.#byUrl.delete(url);
  }

  /** Milliseconds until the next request to the agent; 0 for a healthy agent. */
  backedOffMs(url: string): number {
    return Math.max(0, (this.#byUrl.get(url)?.backedOffUntil ?? 0) - this.#clock.monotonic());
  }

  /** Whether it failed and has not answered since. */
  readonly isFailing = (url: string): boolean => (this.#byUrl.get(url)?.failures ?? 0) > 0;

  retain(urls: ReadonlySet<string>): void {
    for (const url of this.#byUrl.keys()) if (!urls.has(url)) this.#byUrl.delete(url);
  }

  #of(url: string): Health {
    const present = this.#byUrl.get(url);
    if (present) return present;
    const health = { failures: 0, slow: 0, backedOffUntil: 0 };
    this.#byUrl.set(url, health);
    return health;
  }
}
