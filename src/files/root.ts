/**
 * Paths of a node's files, seen from a container that mounts the node's root, for example at `/host`. There, a symbolic link to
 * `/etc/x` means `/host/etc/x`; the kernel would follow it to the container's own `/etc/x`. So links are followed here, one path
 * component at a time, and a path that leaves the root is refused.
 */
import { lstat, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { FileError, fileError } from './error.ts';

/** The limit of Linux itself (`MAXSYMLINKS` in include/linux/namei.h). */
const maxLinks = 40;

/**
 * Resolves a path inside a root directory.
 * @param root directory that stands for `/`; the root itself is trusted and may be a link
 * @param path inside the root; a relative path starts at the root too
 * @returns the path of the file for this process, without symbolic links below the root
 * @throws FileError `missing`; `escapes-root` if `..` leads above the root; `unreadable` for a cycle of links
 */
export async function resolveInRoot(root: string, path: string): Promise<string> {
  const waiting = path.split('/').reverse();
  const done: string[] = [];
  let links = 0;
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (name === '' || name === '.') continue;
    if (name === '..') {
      if (done.length === 0) throw new FileError('escapes-root', path, `leads out of ${root}`);
      done.pop();
      continue;
    }
    const target = await linkTarget(join(root, ...done, name), path);
    if (target === undefined) {
      done.push(name);
      continue;
    }
    links += 1;
    if (links > maxLinks) {
      throw new FileError('unreadable', path, 'goes through too many symbolic links');
    }
    if (target.startsWith('/')) done.length = 0;
    waiting.push(...target.split('/').reverse());
  }
  return join(root, ...done);
}

/** The target of a link; `undefined` for any other file. */
async function linkTarget(at: string, requested: string): Promise<string | undefined> {
  try {
    const stat = await lstat(at);
    return stat.isSymbolicLink() ? await readlink(at) : undefined;
  } catch (error) {
    throw fileError(requested, error);
  }
}
