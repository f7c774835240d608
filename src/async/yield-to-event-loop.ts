/** Long work in slices, so that lease renewals, watches and probes run in between. */
import { setImmediate as nextTurn } from 'node:timers/promises';

const sliceMs = 10;

/** Makes a function that long work awaits often, to yield after each slice. It throws on abort. */
export function createYielder(signal: AbortSignal): () => Promise<void> | undefined {
  let since = performance.now();
  return () => {
    if (performance.now() - since < sliceMs) return undefined;
    return nextTurn(undefined, { signal }).then(() => {
      since = performance.now();
    });
  };
}
