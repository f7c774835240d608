/**
 * Time as a value that is passed in. `now` is the wall clock, for what is written down and compared across restarts;
 * `monotonic` never jumps, for durations and expiry inside one process. Both in milliseconds.
 */
export interface Clock {
  now(): number;
  monotonic(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};
