/**
 * Content of files that is kept up to date. Whatever reads it (one file, several, a whole directory) is called again
 * when its directories may have changed; a new value counts only when its fingerprint differs, and when reading or
 * parsing fails, the last good value stays in force.
 */
import { watchDirectories, type WatchOptions } from './watch.ts';

export interface LiveContentOptions<T> extends WatchOptions {
  /** Reads and parses; throws where the content cannot be used. Never called twice at once. */
  readonly read: () => Promise<T>;
  /** Equal for equal content. */
  readonly fingerprint: (value: T) => string;
  /** Directories whose entries matter. */
  readonly dirs: readonly string[];
  /** Called with each new value, but not with what the first reading gives. */
  readonly onChange?: ((value: T) => void) | undefined;
  /** Called after each reading with what it gave; `undefined` where it failed. */
  readonly onRead?: ((value: T | undefined) => void) | undefined;
  /** Called once for each distinct problem; the same problem is told again only after a success. */
  readonly onProblem?: ((error: Error) => void) | undefined;
}

export interface LiveContent<T> {
  /** The last good value; `undefined` where there never was one. */
  current(): T | undefined;
  /** Why the last reading failed; `undefined` where it did not. */
  problem(): Error | undefined;
  /** Looks again now. Resolves when a reading that began after this call is done. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Reads once, then keeps watching. A first reading that fails is a problem, not an exception: whoever needs a value
 * asks `current()`.
 */
export async function liveContent<T>(options: LiveContentOptions<T>): Promise<LiveContent<T>> {
  let good: { value: T; fingerprint: string } | undefined;
  let problem: Error | undefined;
  let queue: Promise<void> = Promise.resolve();
  let waiting: Promise<void> | undefined;
  let started = false;
  let closed = false;

  async function look(): Promise<void> {
    waiting = undefined;
    if (closed) return;
    try {
      const value = await options.read();
      const fingerprint = options.fingerprint(value);
      problem = undefined;
      options.onRead?.(value);
      if (closed || fingerprint === good?.fingerprint) return;
      good = { value, fingerprint };
      if (started) options.onChange?.(value);
    } catch (error) {
      const told = problem?.message;
      problem = error instanceof Error ? error : new Error(String(error));
      options.onRead?.(undefined);
      if (problem.message !== told) options.onProblem?.(problem);
    }
  }

  /** At most one reading runs and one waits: what happens meanwhile is seen by the one that waits. */
  function refresh(): Promise<void> {
    if (waiting === undefined) {
      waiting = queue.then(look);
      queue = waiting;
    }
    return waiting;
  }

  // Watching starts before the first reading, so that a change during it is not lost.
  const watcher = watchDirectories(options.dirs, () => void refresh(), options);
  await refresh();
  started = true;

  return {
    current: () => good?.value,
    problem: () => problem,
    refresh,
    async close() {
      closed = true;
      await watcher.close();
      await queue;
    },
  };
}
