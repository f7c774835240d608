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
import { watch, type FSWatcher } from 'chokidar';
import type { Log } from '../telemetry/log.ts';

export interface WatchOptions {
  /** Files are read at least this often. Default: 10 s, as in controller-runtime's certwatcher. */
  readonly pollMs?: number | undefined;
  /** From the first event to the reading, so that a burst is one change. Default: 100 ms. */
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

/** Reads once, then watches. After a first failure, `current()` is `undefined`; see `problem()`. */
export async function liveContent<T>(options: LiveContentOptions<T>): Promise<LiveContent<T>> {
  const live = new LiveContent(options);
  await live.start();
  return live;
}

export class LiveContent<T> {
  readonly #options: LiveContentOptions<T>;
  readonly #watcher: FSWatcher;
  #watched: ReadonlySet<string> = new Set();
  /** Directories that were found by the last reading. */
  #found: readonly string[] = [];
  readonly #poll: NodeJS.Timeout;
  #debounce: NodeJS.Timeout | undefined;
  #readAt = -Infinity;
  #good: { readonly value: T; readonly fingerprint: string } | undefined;
  #problem: Error | undefined;
  #running: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #started = false;
  #closed = false;

  constructor(options: LiveContentOptions<T>) {
    this.#options = options;
    const { dirs, pollMs = defaultPollMs, log } = options;
    const onEvent = (): void => this.#onEvent();
    this.#watcher = watch([], {
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
    this.#watch(dirs);
    this.#poll = setInterval(() => void this.refresh(), pollMs).unref();
  }

  async start(): Promise<void> {
    await this.refresh();
    this.#started = true;
  }

  /** The last good value; `undefined` before the first one. */
  current(): T | undefined {
    return this.#good?.value;
  }

  /** Why the last attempt failed; `undefined` after a success. */
  problem(): Error | undefined {
    return this.#problem;
  }

  /** Reads again. Resolves after an attempt that began after this call: one runs, and one is queued. */
  refresh(): Promise<void> {
    if (this.#next === undefined) {
      this.#next = this.#running.then(() => this.#read());
      this.#running = this.#next;
    }
    return this.#next;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#poll);
    clearTimeout(this.#debounce);
    await this.#watcher.close();
    await this.#running;
  }

  #watch(dirs: readonly string[]): void {
    const { root = '/' } = this.#options;
    // For a missing directory, chokidar would read and watch those above it. The next reading finds a new one.
    const wanted = new Set(dirs.map((dir) => join(root, dir)).filter((dir) => existsSync(dir)));
    this.#watcher.unwatch([...this.#watched].filter((dir) => !wanted.has(dir)));
    this.#watcher.add([...wanted].filter((dir) => !this.#watched.has(dir)));
    this.#watched = wanted;
  }

  #onEvent(): void {
    if (this.#closed) return;
    const { debounceMs = defaultDebounceMs } = this.#options;
    // A reading can cost 100 ms of CPU: under a steady stream of events there is one a second.
    const restMs = 10 * debounceMs;
    const isRecent = performance.now() - this.#readAt < restMs;
    this.#debounce ??= setTimeout(
      () => {
        this.#debounce = undefined;
        void this.refresh();
      },
      isRecent ? restMs : debounceMs,
    ).unref();
  }

  async #read(): Promise<void> {
    this.#next = undefined;
    if (this.#closed) return;
    const { read, dirs, onRead, onProblem } = this.#options;
    try {
      const value = await read().finally(() => (this.#readAt = performance.now()));
      this.#take(value);
    } catch (error) {
      const before = this.#problem?.message;
      this.#problem = error instanceof Error ? error : new Error(String(error));
      onRead?.(undefined);
      if (this.#problem.message !== before) onProblem?.(this.#problem);
    } finally {
      if (!this.#closed) this.#watch([...dirs, ...this.#found]);
    }
  }

  #take(value: T): void {
    const { fingerprint: fingerprintOf, dirsOf, onRead, onChange } = this.#options;
    const fingerprint = fingerprintOf(value);
    this.#problem = undefined;
    onRead?.(value);
    this.#found = dirsOf?.(value) ?? [];
    if (this.#closed || fingerprint === this.#good?.fingerprint) return;
    this.#good = { value, fingerprint };
    if (this.#started) onChange?.(value);
  }
}
