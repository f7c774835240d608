/** Bounded concurrency over items of many owners, round robin. No owner can take all places. */
import { FairQueue } from './fair-queue.ts';
import { FairSemaphore, type Leave } from './fair-semaphore.ts';

export interface Owned<T> {
  readonly item: T;
  /** Namespaces, for example. Each one may start the item; the first one counts. */
  readonly owners: readonly string[];
}

export interface FairConcurrency {
  /** How many run at the same time (`FairSemaphore`). */
  readonly places: number;
  /** `false`: nothing more is started. Default: always. */
  readonly mayStart?: () => boolean;
}

/** @returns the items not started @throws the first error; started work goes on, nothing more starts */
export async function fairlyConcurrent<T>(
  items: readonly Owned<T>[],
  { places, mayStart = () => true }: FairConcurrency,
  work: (item: T) => Promise<void>,
): Promise<readonly T[]> {
  const semaphore = new FairSemaphore({ places });
  const queue = new FairQueue<Owned<T>>();
  for (const each of items) for (const owner of each.owners) queue.add(owner, each);
  const left = new Set(items);
  /** Work that failed stays here. */
  const running = new Set<Promise<void>>();
  while (mayStart()) {
    let leave: Leave | undefined;
    const next = queue.take((owner) => (leave = semaphore.tryEnter(owner)) !== undefined);
    if (next !== undefined) {
      for (const owner of next.owners) queue.delete(owner, next);
      left.delete(next);
      const run = work(next.item)
        .finally(leave)
        .then(() => void running.delete(run));
      running.add(run);
    } else if (running.size > 0) await Promise.race(running);
    else break;
  }
  await Promise.all(running);
  return Array.from(left, ({ item }) => item);
}
