/**
 * Paths of a node's files, seen from a container that has the node's root mounted at, say, `/host`. A symbolic link
 * there that points to `/etc/x` means `/host/etc/x`; following it with the container's own root would read the wrong
 * file. So links are followed here, one path component at a time, and what leaves the root is refused.
 */
import { lstat, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { FileError, fileError } from './error.ts';

/** The limit of Linux itself (`MAXSYMLINKS` in include/linux/namei.h). */
const maxLinks = 40;

/**
 * Resolves a path inside a root directory.
 * @param root directory that stands for `/`; the root itself is trusted and may be a link
 * @param path absolute inside the root; a relative one is taken from the root too
 * @returns the path of the same file as this process sees it, without symbolic links below the root
 * @throws FileError `missing`, `escapes-root` where `..` climbs above the root, `unreadable` for a circle of links
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

/** Where a link points to, or `undefined` for what is no link. */
async function linkTarget(at: string, asked: string): Promise<string | undefined> {
  try {
    const stat = await lstat(at);
    return stat.isSymbolicLink() ? await readlink(at) : undefined;
  } catch (error) {
    throw fileError(asked, error);
  }
}
