/** A token bucket: so many requests each second, and a burst of so many at once. */
import type { Clock } from '../telemetry/clock.ts';

export interface Limiter {
  /**
   * Resolves when the caller may go on, first come, first served.
   * @throws the signal's reason when it aborts first
   */
  take(signal: AbortSignal): Promise<void>;
}

export interface LimiterOptions {
  readonly perSecond: number;
  readonly burst: number;
  readonly clock: Clock;
  /** Waits; injected by tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}
