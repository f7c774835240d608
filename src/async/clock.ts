/** Time and chance as one value that is passed in, so that tests decide both. All times are milliseconds. */
import { wait } from './wait.ts';

export interface Clock {
  /** Wall clock: for times that are written down or compared across restarts. */
  readonly now: () => number;
  /** Never jumps: for durations and expiry inside one process. */
  readonly monotonic: () => number;
  /** @throws the signal's reason if it aborts first */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Runs `action` once after `ms`, without keeping the process alive. @returns cancels the timer */
  readonly timer: (ms: number, action: () => void) => () => void;
  /** 0 ≤ value < 1, for jitter. */
  readonly random: () => number;
}

/** A longer `setTimeout` overflows and runs at once. */
const longestTimerMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: wait,
  timer: (ms, action) => {
    const timer = setTimeout(action, Math.min(ms, longestTimerMs)).unref();
    return () => clearTimeout(timer);
  },
  random: Math.random,
};

/** An exponential back-off: the pause doubles with each failure in a row. */
export interface BackOff {
  /** Pause after the first failure. */
  readonly firstMs: number;
  /** The longest pause. */
  readonly mostMs: number;
}

/** Keeps the power finite: 2^30 times the shortest pause is longer than any limit. */
const maxDoublings = 30;

/**
 * The pause after a failure, milliseconds.
 * @param failures in a row, this one included: 1 or more
 * @param random a clock's, for jitter: between half of the pause and all of it. Default: all of it
 */
export function backOffMs(
  { firstMs, mostMs }: BackOff,
  failures: number,
  random: Clock['random'] = () => 1,
): number {
  const doublings = Math.min(Math.max(failures - 1, 0), maxDoublings);
  return Math.min(mostMs, firstMs * 2 ** doublings) * (0.5 + random() / 2);
}
