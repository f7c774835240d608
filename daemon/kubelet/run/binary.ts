/**
 * The program of a provider, and whether it may run. It runs with the agent's rights, so only root, or the
 * user of the agent, may be able to replace it. A file can be replaced by those who can write it, its
 * directory, or any directory above up to the host root.
 */
import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { FileError, resolveInRoot } from '../../../src/files/read.ts';
import { PluginError } from './plugin-error.ts';

export interface PluginPath {
  readonly hostRoot: string;
  /** Directory of plugins, inside the host root. */
  readonly binDir: string;
}

/** Write permission of group and others. */
const othersMayWrite = 0o022;
/** In a directory with this bit, others can add entries, and remove only their own (inode(7), S_ISVTX). */
const sticky = 0o1000;
const mayExecute = 0o111;

/**
 * Checks a provider's program.
 * @param name as configured
 * @returns its path inside the host root, with links not resolved, as in the kubelet
 * @throws PluginError `missing`, `not-executable` or `unsafe`
 */
export async function checkBinary(name: string, { hostRoot, binDir }: PluginPath): Promise<string> {
  // Validation refuses such names too; a path must not depend on it.
  if (name === '' || name === '.' || name === '..' || /[/\0]/.test(name)) {
    throw new PluginError('unsafe', 'the name of a plugin must be a single part of a path');
  }
  const path = join('/', binDir, name);
  const check = createStepCheck();
  try {
    check('/', await stat(hostRoot));
    const resolved = await resolveInRoot(hostRoot, path, check);
    const file = await stat(resolved);
    if (!file.isFile()) throw new PluginError('not-executable', `${path} is not a regular file`);
    if ((file.mode & mayExecute) === 0) {
      throw new PluginError('not-executable', `${path} is not executable; chmod 0755 it`);
    }
    return path;
  } catch (error) {
    if (error instanceof FileError && error.code === 'missing') {
      throw new PluginError(
        'missing',
        `plugin binary executable ${path} did not exist; check kubeletConfig.binDir`,
      );
    }
    if (error instanceof FileError) throw new PluginError('unsafe', error.message);
    throw error;
  }
}

/** Checks owner and mode of all directories, links and files of a path. @throws PluginError `unsafe` */
function createStepCheck(): (path: string, stats: Stats) => void {
  /** Directories to which others can add entries. */
  const shared = new Map<string, Stats>();
  return (path, stats) => {
    const parent = shared.get(dirname(path));
    // Others can give a file or a link of root a second name there, but not a directory.
    if (parent && !stats.isDirectory()) throw writableByOthers(dirname(path), parent);
    // A link is replaced through its directory; its own mode has no meaning.
    if (stats.isSymbolicLink()) return;
    const self = process.getuid?.() ?? 0;
    if (stats.uid !== 0 && stats.uid !== self) {
      const message = `${path} belongs to user ${stats.uid}; chown it to root, or the program is not run`;
      throw new PluginError('unsafe', message);
    }
    if ((stats.mode & othersMayWrite) === 0) return;
    if (!stats.isDirectory() || (stats.mode & sticky) === 0) throw writableByOthers(path, stats);
    shared.set(path, stats);
  };
}

function writableByOthers(path: string, { mode }: Stats): PluginError {
  const bits = (mode & 0o7777).toString(8).padStart(4, '0');
  return new PluginError('unsafe', `${path} can be written by others (mode ${bits}); chmod go-w it`);
}
