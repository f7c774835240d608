/** Suggests an existing path for a missing one, for messages about typing mistakes. */
import { join } from 'node:path';
import { ifError } from '../async/if-error.ts';
import { suggestionFor } from '../names/suggestion.ts';
import { FileError, listDirectory, statPath } from './read.ts';

/** Directories of configuration have a few entries; comparing more would take time at each reading. */
const maxEntries = 500;

/**
 * `; did you mean PATH?`, or nothing; made to be appended to a message.
 * @param path absolute and missing
 * @param known other paths that may be meant; the first that exists is suggested if no name is near
 */
export async function didYouMeanPath(
  path: string,
  root: string | undefined,
  known: readonly string[] = [],
): Promise<string> {
  const found = (await nearestPath(path, root)) ?? (await firstExisting(known, root));
  return found === undefined ? '' : `; did you mean ${found}?`;
}

async function nearestPath(path: string, root: string | undefined): Promise<string | undefined> {
  let at = '/';
  for (const name of path.split('/').filter((part) => part !== '')) {
    const next = (await exists(join(at, name), root)) ? name : suggestionFor(name, await namesIn(at, root));
    if (next === undefined) return undefined;
    at = join(at, next);
  }
  return at;
}

async function firstExisting(
  paths: readonly string[],
  root: string | undefined,
): Promise<string | undefined> {
  for (const path of paths) if (await exists(path, root)) return path;
  return undefined;
}

async function exists(path: string, root: string | undefined): Promise<boolean> {
  return (await statPath(path, root).catch(ifError(FileError, () => undefined))) !== undefined;
}

/** Names with quotes or control characters are none that a person meant. */
const plainName = /^[\w.*:@+-]{1,255}$/;

async function namesIn(path: string, root: string | undefined): Promise<readonly string[]> {
  const names = await listDirectory(path, { maxEntries, root }).catch(ifError(FileError, () => []));
  return names.filter((name) => plainName.test(name));
}
