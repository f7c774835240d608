/** `t.match` that is exact about lists and texts: tap's own accepts any list for `[]`, and longer ones of both. */
import type { Test } from 'tap';

/**
 * The value has what the pattern has, which may be a part: objects may have more fields, and a regular expression
 * matches a part of a text. Lists have as many items as their patterns.
 */
export function like(
  t: Pick<Test, 'currentAssert' | 'fail' | 'match'>,
  found: unknown,
  pattern: unknown,
  message = 'should match',
): boolean {
  t.currentAssert = like;
  const problem = difference(found, pattern, '');
  if (problem === undefined) return t.match(found, pattern, message);
  return t.fail(`${message}: ${problem}`, { found, pattern });
}

function difference(found: unknown, pattern: unknown, path: string): string | undefined {
  if (typeof found === 'string' && typeof pattern === 'string' && found !== pattern)
    return `${path || 'the text'} is ${found} instead of ${pattern}`;
  if (typeof found !== 'object' || found === null || typeof pattern !== 'object' || pattern === null)
    return undefined;
  if (Array.isArray(pattern) && Array.isArray(found) && found.length !== pattern.length)
    return `${path || 'the list'} has ${found.length} items instead of ${pattern.length}`;
  for (const [key, part] of Object.entries(pattern)) {
    const problem = difference((found as Record<string, unknown>)[key], part, `${path}.${key}`);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
