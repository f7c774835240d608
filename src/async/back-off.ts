/** Exponential back-off: the pause doubles with each failure in a row. */
import type { Clock } from './clock.ts';

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
