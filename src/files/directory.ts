/**
 * All files of a directory at one point in time. Kubernetes replaces the content of a mounted volume by swapping
 * the link `..data`. If that happens between the first and the last file, all are read again.
 */
import { readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf, FileError, fileError, listDirectory, readBounded, resolveInRoot } from './read.ts';

export interface DirectoryOptions {
  /** Selects the files to read by their names. Hidden files are never read. */
  readonly wanted: (name: string) => boolean;
  readonly maxEntries: number;
  /** Limit for each file. */
  readonly maxBytes: number;
  /** Directory that stands for `/`, such as `/host`. */
  readonly root?: string | undefined;
}

/** Volumes are swapped minutes apart, so a swap during each of five attempts is a fault. */
const maxAttempts = 5;

/**
 * Reads the wanted files of a directory.
 * @returns contents by name, in bytewise order; for a file that cannot be read, the error
 * @throws FileError if the directory itself cannot be read
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
  throw new FileError('unreadable', dir, 'keeps being replaced while it is read');
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

/** The target of `..data`; `undefined` in a directory that is not a mounted volume. */
async function volumeVersion(dir: string, root: string | undefined): Promise<string | undefined> {
  try {
    const resolved = root === undefined ? dir : await resolveInRoot(root, dir);
    return await readlink(join(resolved, '..data'));
  } catch (error) {
    const code = errnoOf(error);
    // EINVAL: it exists but is not a link.
    if (code === 'ENOENT' || code === 'EINVAL' || code === 'missing') return undefined;
    throw fileError(dir, error);
  }
}
