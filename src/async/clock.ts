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
