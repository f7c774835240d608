/**
 * Watching directories. Kubernetes replaces the content of a mounted volume by swapping one symbolic link (`..data`),
 * editors and tools replace files by renaming, and both leave a watch on the file itself dead. So directories are
 * watched, never files; the kind of event is ignored; and because a watch can miss things (network file systems,
 * links that lead elsewhere), time is a reason to look again too. `onChange` means "look again", not "it changed":
 * compare content, as `liveContent` does.
 */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { watch, type FSWatcher } from 'chokidar';
import type { Log } from '../telemetry/log.ts';
import { resolveInRoot } from './root.ts';

/** Contract of watching files: acts on content, not on events. */
export interface Watcher {
  close(): Promise<void>;
}

export interface WatchOptions {
  /** Looked at again after this long, whatever the events say; 10 s by default, as controller-runtime's certwatcher. */
  readonly pollMs?: number | undefined;
  /** A burst of events is one change; 100 ms by default. */
  readonly debounceMs?: number | undefined;
  /** Directory that stands for `/`, such as `/host`; `dirs` are resolved inside it. */
  readonly root?: string | undefined;
  readonly log?: Log | undefined;
}

const defaultPollMs = 10_000;
const defaultDebounceMs = 100;

/** Events that never pause would put off the change for ever; after this many debounce times it is told anyway. */
const maxPostponements = 10;

/**
 * Watches the entries of directories (not of their subdirectories). A directory may be missing, appear, be replaced
 * or vanish: it is found again. A watcher does not keep the process alive.
 * @param dirs absolute paths
 * @param onChange called when it is worth looking again
 */
export function watchDirectories(
  dirs: readonly string[],
  onChange: () => void,
  options: WatchOptions = {},
): Watcher {
  const debounceMs = options.debounceMs ?? defaultDebounceMs;
  let closed = false;
  let watcher: FSWatcher | undefined;
  let watched = '';
  let debounce: NodeJS.Timeout | undefined;
  let firstEventAt = 0;
  let arming: Promise<void> = Promise.resolve();

  /** Follows the directories to where they are now. */
  async function arm(): Promise<void> {
    const places = await Promise.all(dirs.map((dir) => place(dir, options.root)));
    const now = places.map(({ path, identity }) => `${path}\0${identity}`).join('\0');
    if (closed || now === watched) return;
    const before = watcher;
    watched = now;
    watcher = watch([...new Set(places.map(({ path }) => path))], {
      depth: 0,
      followSymlinks: false,
      ignoreInitial: true,
      ignorePermissionErrors: true,
      persistent: false,
    });
    watcher.on('all', touched);
    watcher.on('raw', touched);
    watcher.on('ready', touched);
    watcher.on('error', failed);
    await before?.close();
  }

  function rearm(): void {
    arming = arming.then(arm).catch(failed);
  }

  function failed(error: unknown): void {
    options.log?.warn({ err: error, dirs }, 'watching files failed, polling');
  }

  function touched(): void {
    if (closed) return;
    const now = performance.now();
    if (debounce === undefined) firstEventAt = now;
    else if (now - firstEventAt >= debounceMs * maxPostponements) return;
    clearTimeout(debounce);
    debounce = setTimeout(tell, debounceMs).unref();
  }

  function tell(): void {
    debounce = undefined;
    if (closed) return;
    rearm();
    onChange();
  }

  rearm();
  const poll = setInterval(tell, options.pollMs ?? defaultPollMs).unref();

  return {
    async close() {
      closed = true;
      clearInterval(poll);
      clearTimeout(debounce);
      await arming;
      await watcher?.close();
    },
  };
}

/** The directory itself, or while it is missing the nearest one above it, where it would have to appear. */
async function place(dir: string, root: string | undefined): Promise<{ path: string; identity: string }> {
  try {
    const path = root === undefined ? dir : await resolveInRoot(root, dir);
    const { dev, ino, isDirectory } = await identityOf(path);
    if (isDirectory) return { path, identity: `${dev}:${ino}` };
  } catch {
    // Missing, denied or no directory: its parent tells when that changes.
  }
  const parent = dirname(dir);
  if (parent === dir) return { path: root ?? dir, identity: 'top' };
  return place(parent, root);
}

async function identityOf(path: string): Promise<{ dev: number; ino: number; isDirectory: boolean }> {
  const found = await stat(path);
  return { dev: found.dev, ino: found.ino, isDirectory: found.isDirectory() };
}
