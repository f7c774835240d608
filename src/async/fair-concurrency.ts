/** Bounded concurrency over items of many owners, round robin. No owner can take all places. */
import { setMaxListeners } from 'node:events';
import { FairSemaphore } from './fair-semaphore.ts';

export interface Owned<T> {
  readonly item: T;
  /** Namespaces, for example. Each one may start the item; the first one counts. */
  readonly owners: readonly string[];
}

/**
 * @param places how many run at the same time (`FairSemaphore`)
 * @returns the items not started
 * @throws the first error; started work goes on, nothing more starts
 */
export async function fairlyConcurrent<T>(
  items: readonly Owned<T>[],
  { places, mayStart }: { readonly places: number; readonly mayStart: () => boolean },
  work: (item: T) => Promise<void>,
): Promise<readonly T[]> {
  const semaphore = new FairSemaphore({ places });
  const failing = new AbortController();
  setMaxListeners(0, failing.signal);
  const left = new Set(items);
  const run = async (each: Owned<T>, owner: string): Promise<void> => {
    const leave = await semaphore.enter(owner, failing.signal);
    try {
      if (mayStart() && left.delete(each)) await work(each.item);
    } catch (error) {
      failing.abort(error);
      throw error;
    } finally {
      leave();
    }
  };
  await Promise.all(items.flatMap((each) => each.owners.map((owner) => run(each, owner))));
  return Array.from(left, ({ item }) => item);
}
