/** Go's `filepath.Glob` on the node's files, with limits, for `imports` of config.toml. */
import { join } from 'node:path';
import { orBroken, type NodeFiles } from '../../node-files.ts';
import { ConfigFileError, invalid } from '../../toml.ts';

/** Drop-in directories contain a handful of files. */
const maxEntries = 1000;
const maxMatches = 200;

/**
 * The matching paths, sorted within each directory. Directories that cannot be listed match nothing. A
 * leading dot in a name has no special meaning.
 * @param pattern absolute and clean
 * @throws InvalidConfig if Go refuses the pattern, or it matches too many files
 */
export async function glob(pattern: string, files: NodeFiles): Promise<readonly string[]> {
  let found = ['/'];
  for (const part of pattern.split('/').filter((name) => name !== '')) {
    const matcher = /[*?[\\]/.test(part) ? matcherOf(part) : undefined;
    const next: string[] = [];
    for (const dir of found) {
      const names = matcher ? await orBroken(dir, () => files.names(dir, maxEntries)) : [part];
      if (names instanceof ConfigFileError) continue;
      for (const name of names) {
        const path = join(dir, name);
        const isThere = matcher?.test(name) ?? (await orBroken(path, () => files.stat(path)));
        if (isThere && !(isThere instanceof ConfigFileError)) next.push(path);
      }
      if (next.length > maxMatches)
        throw invalid(`a pattern of imports matches more than ${maxMatches} files`);
    }
    found = next;
  }
  return found;
}

/** The rules of Go's `filepath.Match` for one part of a path. */
function matcherOf(part: string): RegExp {
  const token = /(\*+)|\?|\[(\^?)((?:(?:\\.|[^\\\]-])(?:-(?:\\.|[^\\\]-]))?)+)\]|\\(.)|([^*?[\\])/gsuy;
  let source = '';
  let end = 0;
  for (const [whole, stars, negated, range, escaped, plain] of part.matchAll(token)) {
    end += whole.length;
    if (stars !== undefined) source += '[^/]*';
    else if (whole === '?') source += '[^/]';
    else if (range === undefined) source += literal(escaped ?? plain ?? '');
    else source += `[${negated}${range.replaceAll(/\\(.)/gsu, (_, each: string) => literal(each))}]`;
  }
  try {
    if (end === part.length) return new RegExp(`^${source}$`, 'su');
  } catch {
    // A range that ends before it begins.
  }
  throw invalid('a pattern of imports is not valid: syntax error in pattern');
}

/** Each character as its code point, which has no special meaning. */
function literal(text: string): string {
  return text.replaceAll(/./gsu, (letter) => `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`);
}
