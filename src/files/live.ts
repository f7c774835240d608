/**
 * Content of files that is kept up to date: read again after events in its directories, and every 10 s. A new
 * value replaces the current one only if its fingerprint differs. If reading or parsing fails, the last good
 * value stays in force.
 *
 * Kubernetes replaces the content of a mounted volume by swapping one symbolic link (`..data`), and editors replace
 * files by renaming; both end a watch on the file itself. So directories are watched, and the kind of event is
 * ignored. Some changes have no event: network file systems, links to other directories, directories that return.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { watch } from 'chokidar';
import type { Log } from '../telemetry/log.ts';

export interface WatchOptions {
  /** Files are read at least this often. Default: 10 s, as in controller-runtime's certwatcher. */
  readonly pollMs?: number | undefined;
  /** Time from the first event to the reading, so that a burst is one change. Default: 100 ms. */
  readonly debounceMs?: number | undefined;
  /** Directory that stands for `/`, such as `/host`. */
  readonly root?: string | undefined;
  readonly log?: Log | undefined;
}

const defaultPollMs = 10_000;
const defaultDebounceMs = 100;

export interface LiveContentOptions<T> extends WatchOptions {
  /** Reads and parses; throws if the content cannot be used. Calls never overlap. */
  readonly read: () => Promise<T>;
  /** Equal for equal content. */
  readonly fingerprint: (value: T) => string;
  /** Directories to watch. */
  readonly dirs: readonly string[];
  /** Directories that were found by reading, to watch too. */
  readonly dirsOf?: ((value: T) => readonly string[]) | undefined;
  /** Called with each new value except the first. */
  readonly onChange?: ((value: T) => void) | undefined;
  /** Called after each attempt with the value; `undefined` if it failed. */
  readonly onRead?: ((value: T | undefined) => void) | undefined;
  /** Called once for each distinct problem, and again for the same problem only after a success. */
  readonly onProblem?: ((error: Error) => void) | undefined;
}

export type LiveContent<T> = Awaited<ReturnType<typeof liveContent<T>>>;

/** Reads once, then watches. After a first failure, `current()` is `undefined`; see `problem()`. */
export async function liveContent<T>(options: LiveContentOptions<T>) {
  const { dirs, root = '/', pollMs = defaultPollMs, debounceMs = defaultDebounceMs, log } = options;
  const { read, fingerprint: fingerprintOf, dirsOf, onRead, onChange, onProblem } = options;
  let watched: ReadonlySet<string> = new Set();
  /** Directories that were found by the last reading. */
  let found: readonly string[] = [];
  let debounce: NodeJS.Timeout | undefined;
  let readAt = -Infinity;
  let good: { readonly value: T; readonly fingerprint: string } | undefined;
  let problem: Error | undefined;
  let running: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  let isStarted = false;
  let isClosed = false;

  const watcher = watch([], {
    depth: 0,
    followSymlinks: false,
    ignoreInitial: true,
    ignorePermissionErrors: true,
    persistent: false,
  })
    .on('all', onEvent)
    .on('raw', onEvent)
    // A change between the first attempt and the start of the watch has no event.
    .on('ready', onEvent)
    .on('error', (error) => log?.warn({ err: error, dirs }, 'watching files failed, polling'));
  watchDirs(dirs);
  const poll = setInterval(() => void refresh(), pollMs).unref();

  /** Reads again. Resolves after an attempt that began after this call: one runs, and one is queued. */
  function refresh(): Promise<void> {
    if (next === undefined) {
      next = running.then(readNow);
      running = next;
    }
    return next;
  }

  function watchDirs(all: readonly string[]): void {
    // For a missing directory, chokidar would read and watch those above it. The next reading finds a new one.
    const wanted = new Set(all.map((dir) => join(root, dir)).filter((dir) => existsSync(dir)));
    watcher.unwatch([...watched].filter((dir) => !wanted.has(dir)));
    watcher.add([...wanted].filter((dir) => !watched.has(dir)));
    watched = wanted;
  }

  function onEvent(): void {
    if (isClosed) return;
    // A reading can cost 100 ms of CPU: under a steady stream of events there is one a second.
    const restMs = 10 * debounceMs;
    const isRecent = performance.now() - readAt < restMs;
    debounce ??= setTimeout(
      () => {
        debounce = undefined;
        void refresh();
      },
      isRecent ? restMs : debounceMs,
    ).unref();
  }

  async function readNow(): Promise<void> {
    next = undefined;
    if (isClosed) return;
    try {
      take(await read().finally(() => (readAt = performance.now())));
    } catch (error) {
      const before = problem?.message;
      problem = error instanceof Error ? error : new Error(String(error));
      onRead?.(undefined);
      if (problem.message !== before) onProblem?.(problem);
    } finally {
      if (!isClosed) watchDirs([...dirs, ...found]);
    }
  }

  function take(value: T): void {
    const fingerprint = fingerprintOf(value);
    problem = undefined;
    onRead?.(value);
    found = dirsOf?.(value) ?? [];
    if (isClosed || fingerprint === good?.fingerprint) return;
    good = { value, fingerprint };
    if (isStarted) onChange?.(value);
  }

  await refresh();
  isStarted = true;
  return {
    /** The last good value; `undefined` before the first one. */
    current: (): T | undefined => good?.value,
    /** Why the last attempt failed; `undefined` after a success. */
    problem: () => problem,
    refresh,
    close: async (): Promise<void> => {
      isClosed = true;
      clearInterval(poll);
      clearTimeout(debounce);
      await watcher.close();
      await running;
    },
  };
}
