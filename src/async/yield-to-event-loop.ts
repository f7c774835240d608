/** Long work in slices: renewals of the Lease, watches and probes have their turn in between. */
import { setImmediate as nextTurn } from 'node:timers/promises';

const sliceMs = 10;

/**
 * Makes what such work awaits often.
 * @returns a function that gives the others their turn where this work had its slice
 * @throws the signal's reason, so that work nobody wants any more ends
 */
export function createYielder(signal: AbortSignal): () => Promise<void> | undefined {
  let since = performance.now();
  return () => {
    if (performance.now() - since < sliceMs) return undefined;
    return nextTurn(undefined, { signal }).then(() => {
      since = performance.now();
    });
  };
}
