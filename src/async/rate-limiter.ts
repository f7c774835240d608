/** A token bucket: a rate of requests, and a burst. */
import { BoundedMap } from './bounded-map.ts';
import type { Clock } from './clock.ts';
import { unlessAborted } from './wait.ts';

export type RateLimiter = ReturnType<typeof createRateLimiter>;

export interface RateLimit {
  readonly perSecond: number;
  readonly burst: number;
  readonly clock: Clock;
}

/** Makes a full bucket. */
export function createRateLimiter({ perSecond, burst, clock }: RateLimit) {
  let tokens = burst;
  let filledAt = clock.monotonic();
  let pausedUntil = Number.NEGATIVE_INFINITY;
  let last: Promise<void> = Promise.resolve();

  /**
   * Takes tokens at once, without the queue of `take`.
   * @returns 0; if there are too few, the milliseconds until there are enough, and none is taken
   */
  function takeOrDelayMs(count = 1): number {
    const at = clock.monotonic();
    tokens = Math.min(burst, tokens + ((at - filledAt) / 1000) * perSecond);
    filledAt = at;
    if (pausedUntil > at) return pausedUntil - at;
    if (tokens < count) return ((count - tokens) / perSecond) * 1000;
    tokens -= count;
    return 0;
  }

  /** Resolves in the order of the calls. @param count at most the burst @throws the signal's reason */
  async function take(signal: AbortSignal, count = 1): Promise<void> {
    signal.throwIfAborted();
    const before = last;
    const turn = Promise.withResolvers<void>();
    last = turn.promise;
    try {
      await unlessAborted(before, signal);
      for (let ms = takeOrDelayMs(count); ms > 0; ms = takeOrDelayMs(count))
        await clock.sleep(Math.ceil(ms), signal);
    } finally {
      // A caller that gives up leaves the queue, and the next one still waits for those before it.
      void before.then(turn.resolve);
    }
  }

  return {
    take,
    takeOrDelayMs,
    /** Stops all callers for a while (`Retry-After`). A longer pause in progress stays. */
    pause: (ms: number): void => {
      pausedUntil = Math.max(pausedUntil, clock.monotonic() + ms);
    },
  };
}

/** A bucket for each key, such as a namespace. The least recently used ones are forgotten. */
export class RateLimiters {
  readonly #limit: RateLimit;
  readonly #limiters: BoundedMap<string, RateLimiter>;

  constructor(limit: RateLimit, maxKeys: number) {
    this.#limit = limit;
    this.#limiters = new BoundedMap(maxKeys);
  }

  get(key: string): RateLimiter {
    const limiter = this.#limiters.get(key) ?? createRateLimiter(this.#limit);
    this.#limiters.set(key, limiter);
    return limiter;
  }
}
