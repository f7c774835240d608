import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Applies a function to each item, to a bounded number of them at a time.
 * @param limit how many run at the same time
 * @returns the results in the items' order
 * @throws the first error; what was started goes on, nothing more is started
 */
export async function concurrently<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const entries = items.entries();
  let failed = false;
  async function worker(): Promise<void> {
    for (const [index, item] of entries) {
      if (failed) return;
      try {
        results[index] = await work(item);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}

/** Long work goes on in slices, so that lease renewals, watches and probes run in between. */
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
