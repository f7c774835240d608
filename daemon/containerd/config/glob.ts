/** Go's `filepath.Glob` inside a host root, with limits, for `imports` of config.toml. */
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { ifError } from '../../../src/async/if-error.ts';
import { FileError, listDirectory, resolveInRoot } from '../../../src/files/read.ts';
import { invalid } from '../../toml.ts';

/** Drop-in directories contain a handful of files. */
const maxEntries = 1000;
const maxMatches = 200;

/**
 * The matching paths, sorted within each directory. Directories that cannot be listed match nothing. A
 * leading dot in a name has no special meaning.
 * @param pattern absolute and clean
 * @throws InvalidConfig if Go refuses the pattern, or it matches too many files
 */
export async function glob(pattern: string, hostRoot?: string): Promise<string[]> {
  let found = ['/'];
  for (const part of pattern.split('/').filter((name) => name !== '')) {
    const meta = /[*?[\\]/.test(part);
    const matcher = meta ? matcherOf(part) : undefined;
    const next: string[] = [];
    for (const dir of found) {
      if (!matcher) {
        if (await exists(join(dir, part), hostRoot)) next.push(join(dir, part));
        continue;
      }
      const listed = listDirectory(dir, { maxEntries, root: hostRoot });
      for (const name of await listed.catch(ifError(FileError, () => [])))
        if (matcher.test(name)) next.push(join(dir, name));
      if (next.length > maxMatches)
        throw invalid(`a pattern of imports matches more than ${maxMatches} files`);
    }
    found = next;
  }
  return found;
}

/** The rules of Go's `filepath.Match` for one part of a path. */
function matcherOf(part: string): RegExp {
  const token = /\*|\?|\[(\^?)((?:(?:\\.|[^\\\]-])(?:-(?:\\.|[^\\\]-]))?)+)\]|\\(.)|([^*?[\\])/gsy;
  let source = '';
  let end = 0;
  for (const [whole, negated, range, escaped, plain] of part.matchAll(token)) {
    end += whole.length;
    if (whole === '*') source += '[^/]*';
    else if (whole === '?') source += '[^/]';
    else if (range !== undefined) source += `[${negated}${classOf(range)}]`;
    else source += literal(escaped ?? plain ?? '');
  }
  if (end < part.length) throw invalid('a pattern of imports is not valid: syntax error in pattern');
  // Consecutive stars mean the same as one and would slow the expression down.
  return new RegExp(`^${source.replaceAll(/(?:\[\^\/\]\*)+/g, '[^/]*')}$`, 'su');
}

function classOf(range: string): string {
  const items = [...range.matchAll(/(\\.|[^\\-])(?:-(\\.|[^\\-]))?/gs)];
  return items
    .map(([, low = '', high]) => {
      const [from, to] = [low, high ?? low].map((letter) => letter.replace(/^\\/, ''));
      // An empty range matches nothing in Go; in a RegExp it is an error.
      if (from === undefined || to === undefined || from > to) return '';
      return `${literal(from)}-${literal(to)}`;
    })
    .join('');
}

/** Each character as its code point, which has no special meaning. */
function literal(text: string): string {
  return text.replaceAll(/./gsu, (letter) => `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`);
}

async function exists(path: string, root: string | undefined): Promise<boolean> {
  const resolved = root === undefined ? path : resolveInRoot(root, path);
  return await Promise.resolve(resolved)
    .then(lstat)
    .then(Boolean, () => false);
}
