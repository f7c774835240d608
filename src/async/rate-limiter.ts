/** A token bucket: so many requests each second, and a burst of so many at once. */
import type { Clock } from './clock.ts';
import { unlessAborted, wait } from './wait.ts';

export interface RateLimiter {
  /**
   * Resolves when the caller may go on, first come, first served.
   * @throws the signal's reason when it aborts first
   */
  take(signal: AbortSignal): Promise<void>;
  /** Nobody goes on for so long: the server asked for it (`Retry-After`). A longer pause that runs already stands. */
  pause(ms: number): void;
}

export interface RateLimiterOptions {
  readonly perSecond: number;
  readonly burst: number;
  readonly clock: Clock;
  /** Waits; injected by tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/**
 * Makes a full bucket.
 * @throws RangeError for a rate that is not positive or a burst below 1: nobody could ever go on
 */
export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  const { perSecond, burst, clock, sleep = wait } = options;
  if (!(perSecond > 0) || !(burst >= 1)) {
    throw new RangeError(`a limiter of ${perSecond} per second with a burst of ${burst} lets nobody pass`);
  }
  let tokens = burst;
  let filledAt = clock.monotonic();
  let pausedUntil = Number.NEGATIVE_INFINITY;
  let last: Promise<void> = Promise.resolve();

  /** How long until a token is there; 0 takes it. */
  function tryTake(): number {
    const at = clock.monotonic();
    tokens = Math.min(burst, tokens + ((at - filledAt) / 1000) * perSecond);
    filledAt = at;
    if (pausedUntil > at) return pausedUntil - at;
    if (tokens < 1) return ((1 - tokens) / perSecond) * 1000;
    tokens--;
    return 0;
  }

  async function take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const before = last;
    const turn = Promise.withResolvers<void>();
    last = turn.promise;
    try {
      await unlessAborted(before, signal);
      for (let ms = tryTake(); ms > 0; ms = tryTake()) await sleep(Math.ceil(ms), signal);
    } finally {
      // Whoever gives up leaves the queue without letting the next one overtake.
      void before.then(turn.resolve);
    }
  }

  return {
    take,
    pause: (ms) => {
      pausedUntil = Math.max(pausedUntil, clock.monotonic() + ms);
    },
  };
}
