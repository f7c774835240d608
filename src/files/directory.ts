/**
 * All files of one directory as they stood at one moment. A mounted volume is replaced whole by swapping the link
 * `..data`; when that happens between the first and the last file, everything is read again.
 */
import { readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf, FileError, fileError } from './error.ts';
import { listDirectory, readBounded } from './read.ts';
import { resolveInRoot } from './root.ts';

export interface DirectoryOptions {
  /** Which names are read; hidden ones never are. */
  readonly wanted: (name: string) => boolean;
  readonly maxEntries: number;
  /** For each file. */
  readonly maxBytes: number;
  /** Directory that stands for `/`, such as `/host`. */
  readonly root?: string | undefined;
}

/** Volumes are swapped minutes apart; one that is swapped during each of so many readings is a fault of its own. */
const maxAttempts = 5;

/**
 * Reads the wanted files of a directory.
 * @returns by name, in bytewise order; a file that cannot be read is its error
 * @throws FileError where the directory itself cannot be read
 */
export async function readDirectory(
  dir: string,
  options: DirectoryOptions,
): Promise<ReadonlyMap<string, Buffer | FileError>> {
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    const before = await volumeVersion(dir, options.root);
    const files = await readFiles(dir, options);
    if ((await volumeVersion(dir, options.root)) === before) return files;
  }
  throw new FileError('unreadable', dir, 'is replaced again and again while it is read');
}

async function readFiles(
  dir: string,
  { wanted, maxEntries, maxBytes, root }: DirectoryOptions,
): Promise<ReadonlyMap<string, Buffer | FileError>> {
  const files = new Map<string, Buffer | FileError>();
  for (const name of await listDirectory(dir, { maxEntries, root })) {
    if (name.startsWith('.') || !wanted(name)) continue;
    try {
      files.set(name, await readBounded(join(dir, name), { maxBytes, root }));
    } catch (error) {
      files.set(name, fileError(join(dir, name), error));
    }
  }
  return files;
}

/** Where `..data` points to; `undefined` in a directory that is no mounted volume. */
async function volumeVersion(dir: string, root: string | undefined): Promise<string | undefined> {
  try {
    const resolved = root === undefined ? dir : await resolveInRoot(root, dir);
    return await readlink(join(resolved, '..data'));
  } catch (error) {
    const code = errnoOf(error);
    // EINVAL: it is there, but no link.
    if (code === 'ENOENT' || code === 'EINVAL' || code === 'missing') return undefined;
    throw fileError(dir, error);
  }
}
