/** Bounded concurrency over many owners, in turn. No owner can take all places. */
import { FairQueue } from './fair-queue.ts';
import { FairSemaphore, type Leave } from './fair-semaphore.ts';

export interface Owned<T> {
  readonly item: T;
  /** Namespaces, for example. Each one has a turn for the item; the first one counts. */
  readonly owners: readonly string[];
}

export interface InTurnOptions {
  /** How many run at the same time (`FairSemaphore`). */
  readonly places: number;
  /** `false`: nothing more is started. Default: always. */
  readonly mayStart?: () => boolean;
}

/** @returns the items not started @throws the first error; started work goes on, nothing more starts */
export async function inTurn<T>(
  items: readonly Owned<T>[],
  { places, mayStart = () => true }: InTurnOptions,
  work: (item: T) => Promise<void>,
): Promise<readonly T[]> {
  const semaphore = new FairSemaphore({ places });
  const queue = new FairQueue<T>();
  const ownersOf = new Map(items.map(({ item, owners }) => [item, owners]));
  for (const { item, owners } of items) for (const owner of owners) queue.add(owner, item);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let running = 0;
  let isFailed = false;

  async function run(item: T, leave: Leave): Promise<void> {
    try {
      await work(item);
    } catch (error) {
      isFailed = true;
      reject(error);
    }
    running -= 1;
    leave();
    next();
  }

  function next(): void {
    while (!isFailed && mayStart()) {
      let leave: Leave | undefined;
      const item = queue.take((owner) => (leave = semaphore.tryEnter(owner)) !== undefined);
      if (item === undefined || leave === undefined) break;
      for (const owner of ownersOf.get(item) ?? []) queue.delete(owner, item);
      ownersOf.delete(item);
      running += 1;
      void run(item, leave);
    }
    if (running === 0) resolve();
  }

  next();
  await promise;
  return [...ownersOf.keys()];
}
