/** JSON as a tree with duplicate members. */
import { DecodeError, maxDepth, type Tree } from './tree.ts';

const space = /[ \t\r\n]*/y;
const stringToken = /"(?:[^"\\]|\\.)*"/y;
const otherToken = /[^\s,\]}]+/y;

/**
 * @throws DecodeError for invalid JSON, without quoting it
 */
export function parseJsonTree(text: string): Tree {
  try {
    JSON.parse(text);
  } catch {
    throw new DecodeError('is not valid JSON');
  }
  // The text is valid JSON, so the code below only splits tokens.
  let at = 0;

  function token(pattern: RegExp): string {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0] ?? '';
    at += found.length;
    return found;
  }

  /** The next character that is not white space. */
  function peek(): string {
    token(space);
    return text.charAt(at);
  }

  function value(depth: number): Tree {
    if (depth > maxDepth) throw new DecodeError(`is nested deeper than ${maxDepth} levels`);
    const first = peek();
    if (first === '{') return { members: list('}', () => member(depth)) };
    if (first === '[') return list(']', () => value(depth + 1));
    return scalar(first === '"' ? stringToken : otherToken);
  }

  function member(depth: number): [string, Tree] {
    peek();
    const name = String(scalar(stringToken));
    peek();
    at += 1;
    return [name, value(depth + 1)];
  }

  function list<T>(end: string, item: () => T): T[] {
    const found: T[] = [];
    at += 1;
    while (peek() !== end) {
      found.push(item());
      if (peek() === ',') at += 1;
    }
    at += 1;
    return found;
  }

  function scalar(pattern: RegExp): null | boolean | number | string {
    const parsed = JSON.parse(token(pattern)) as null | boolean | number | string;
    // Go replaces unpaired surrogates.
    return typeof parsed === 'string' ? parsed.toWellFormed() : parsed;
  }

  return value(0);
}
