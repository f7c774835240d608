/**
 * The program of a provider, and whether it may run. It runs with the agent's rights, so only root, or the user of the agent, may be
 * able to write it or its directory.
 */
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { FileError, resolveInRoot } from '../../../src/files/read.ts';
import { PluginError } from './plugin-error.ts';

export interface PluginPath {
  /** Directory that stands for `/`. */
  readonly hostRoot: string;
  /** Directory of plugins, inside the host root. */
  readonly binDir: string;
}

/** Write permission of group and others. */
const othersMayWrite = 0o022;
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
    throw new PluginError('unsafe', name, 'the name of a plugin must be a single part of a path');
  }
  const path = join('/', binDir, name);
  try {
    const resolved = await resolveInRoot(hostRoot, path);
    const file = await stat(resolved);
    if (!file.isFile()) throw new PluginError('not-executable', name, `${path} is not a regular file`);
    if ((file.mode & mayExecute) === 0) {
      throw new PluginError('not-executable', name, `${path} is not executable; chmod 0755 it`);
    }
    checkOwner(name, path, file);
    for (const dir of [await resolveInRoot(hostRoot, dirname(path)), dirname(resolved)]) {
      checkOwner(name, `the directory of ${path}`, await stat(dir));
    }
    return path;
  } catch (error) {
    if (error instanceof FileError && error.code === 'missing') {
      throw new PluginError('missing', name, `plugin binary executable ${path} did not exist`);
    }
    if (error instanceof FileError) throw new PluginError('unsafe', name, error.message);
    throw error;
  }
}

function checkOwner(name: string, what: string, { uid, mode }: { uid: number; mode: number }): void {
  const self = process.getuid?.() ?? 0;
  if (uid !== 0 && uid !== self) {
    const message = `${what} belongs to user ${uid}; chown it to root, or it is not run`;
    throw new PluginError('unsafe', name, message);
  }
  if ((mode & othersMayWrite) !== 0) {
    const bits = (mode & 0o7777).toString(8).padStart(4, '0');
    throw new PluginError('unsafe', name, `${what} can be written by others (mode ${bits}); chmod go-w it`);
  }
}
