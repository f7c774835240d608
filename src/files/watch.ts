/**
 * Watches directories. Kubernetes replaces the content of a mounted volume by swapping one symbolic link
 * (`..data`), and editors replace files by renaming; both end a watch on the file itself. So directories are
 * watched, never files, and the kind of event is ignored. A watch can miss changes (network file systems,
 * links to other directories), so time passing is a reason to read again too. `onChange` means "read again",
 * not "it changed": compare the content, as `liveContent` does.
 */
import { dirname } from 'node:path';
import { watch, type FSWatcher } from 'chokidar';
import type { Log } from '../telemetry/log.ts';
import { statPath, resolveInRoot } from './read.ts';

export interface WatchOptions {
  /** `onChange` is also called this often. Default: 10 s, as in controller-runtime's certwatcher. */
  readonly pollMs?: number | undefined;
  /** A burst of events counts as one change. Default: 100 ms. */
  readonly debounceMs?: number | undefined;
  /** Directory that stands for `/`, such as `/host`; `dirs` are resolved inside it. */
  readonly root?: string | undefined;
  readonly log?: Log | undefined;
}

const defaultPollMs = 10_000;
const defaultDebounceMs = 100;

/** Without a limit, a steady stream of events would delay `onChange` forever. */
const maxDebounceIntervals = 10;

/**
 * Watches the entries of directories, without subdirectories. A directory that is missing, appears, is
 * replaced or vanishes is found again. A watcher does not keep the process alive.
 */
export class DirectoryWatcher {
  #dirs: readonly string[];
  readonly #onChange: () => void;
  readonly #options: WatchOptions;
  readonly #debounceMs: number;
  readonly #poll: NodeJS.Timeout;
  #debounce: NodeJS.Timeout | undefined;
  #firstEventAt = 0;
  #watcher: FSWatcher | undefined;
  /** Paths and identities of the directories that `#watcher` watches. */
  #watched = '';
  #arming: Promise<void> = Promise.resolve();
  #closed = false;

  /** @param dirs absolute paths @param onChange called after a possible change */
  constructor(dirs: readonly string[], onChange: () => void, options: WatchOptions = {}) {
    this.#dirs = dirs;
    this.#onChange = onChange;
    this.#options = options;
    this.#debounceMs = options.debounceMs ?? defaultDebounceMs;
    this.#rearm();
    this.#poll = setInterval(() => this.#notify(), options.pollMs ?? defaultPollMs).unref();
  }

  /** Watches these directories in place of the others. */
  watch(dirs: readonly string[]): void {
    this.#dirs = dirs;
    this.#rearm();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#poll);
    clearTimeout(this.#debounce);
    await this.#arming;
    await this.#watcher?.close();
  }

  #rearm(): void {
    this.#arming = this.#arming.then(() => this.#arm()).catch((error: unknown) => this.#failed(error));
  }

  /** Watches the directories at their current locations. */
  async #arm(): Promise<void> {
    const found = await Promise.all(this.#dirs.map((dir) => nearestDirectory(dir, this.#options.root)));
    const now = found.map(({ path, identity }) => `${path}\0${identity}`).join('\0');
    if (this.#closed || now === this.#watched) return;
    const before = this.#watcher;
    this.#watched = now;
    const onEvent = (): void => this.#onEvent();
    this.#watcher = watch([...new Set(found.map(({ path }) => path))], {
      depth: 0,
      followSymlinks: false,
      ignoreInitial: true,
      ignorePermissionErrors: true,
      persistent: false,
    })
      .on('all', onEvent)
      .on('raw', onEvent)
      .on('ready', onEvent)
      .on('error', (error) => this.#failed(error));
    await before?.close();
  }

  #failed(error: unknown): void {
    this.#options.log?.warn({ err: error, dirs: this.#dirs }, 'watching files failed, polling');
  }

  #onEvent(): void {
    if (this.#closed) return;
    const now = performance.now();
    if (this.#debounce === undefined) this.#firstEventAt = now;
    else if (now - this.#firstEventAt >= this.#debounceMs * maxDebounceIntervals) return;
    clearTimeout(this.#debounce);
    this.#debounce = setTimeout(() => this.#notify(), this.#debounceMs).unref();
  }

  #notify(): void {
    this.#debounce = undefined;
    if (this.#closed) return;
    this.#rearm();
    this.#onChange();
  }
}

/** The directory, or if it is missing its nearest parent, where it would appear. */
async function nearestDirectory(
  dir: string,
  root: string | undefined,
): Promise<{ path: string; identity: string }> {
  // A denied directory is handled like a missing one.
  const stats = await statPath(dir, root).catch(() => undefined);
  if (stats?.isDirectory() === true) {
    const path = root === undefined ? dir : await resolveInRoot(root, dir).catch(() => undefined);
    if (path !== undefined) return { path, identity: `${stats.dev}:${stats.ino}` };
  }
  const parent = dirname(dir);
  return parent === dir ? { path: root ?? dir, identity: 'top' } : nearestDirectory(parent, root);
}
