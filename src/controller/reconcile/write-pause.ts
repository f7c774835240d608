/**
 * A pause at the end of a reconcile that wrote. Events of that write then lead to one more reconcile, not to one each; and
 * two writers that correct each other slow down: the pause doubles with each write, until none was needed for a while.
 */
import { backOffMs, type BackOff } from '../../async/back-off.ts';
import type { Clock } from '../../async/clock.ts';

const pause: BackOff = { firstMs: 100, mostMs: 60_000 };
const forgottenAfterMs = 5 * 60_000;

/**
 * Makes the pause of one reconciler.
 * @returns waits; rejects with the signal's reason
 */
export function createWritePause(clock: Clock): (signal: AbortSignal) => Promise<void> {
  let writes = 0;
  let lastAt = 0;
  return async (signal) => {
    if (clock.monotonic() - lastAt > forgottenAfterMs) writes = 0;
    lastAt = clock.monotonic();
    writes += 1;
    await clock.sleep(backOffMs(pause, writes), signal);
  };
}
