/** Two writers that correct each other slow down. */
import { backOffMs, type BackOff, type Clock } from '../../async/clock.ts';

const writePause: BackOff = { firstMs: 100, mostMs: 60_000 };
const forgottenAfterMs = 5 * 60_000;

/**
 * A pause after a reconcile that wrote. Its events then cause one more reconcile, not one each. Two writers
 * that correct each other slow down: the pause doubles with each write, until none was needed for a while.
 */
export function createWritePause(clock: Clock): (signal: AbortSignal) => Promise<void> {
  let writes = 0;
  let lastAt = 0;
  return async (signal) => {
    if (clock.monotonic() - lastAt > forgottenAfterMs) writes = 0;
    lastAt = clock.monotonic();
    writes += 1;
    await clock.sleep(backOffMs(writePause, writes), signal);
  };
}
