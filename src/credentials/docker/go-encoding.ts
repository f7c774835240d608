/**
 * The parts of Go's encoding/json that docker config files rely on and `JSON.parse` lacks: members in written
 * order with duplicates, and names in any case. `JSON.parse` checks the grammar; values are returned as JSON
 * text, because most of them are never read.
 */

/** Go refuses deeper nesting (encoding/json `maxNestingDepth`). */
const maxDepth = 10_000;

/**
 * The members of an object, in written order, duplicates included, each with the JSON text of its value;
 * undefined for another value.
 * @param text a valid JSON text; check it with `JSON.parse` first
 * @throws RangeError if it is nested too deeply
 */
export function members(text: string): readonly (readonly [name: string, value: string])[] | undefined {
  let at = skipSpace(text, 0);
  if (text[at] !== '{') return undefined;
  const found: [string, string][] = [];
  at = skipSpace(text, at + 1);
  while (text[at] === '"') {
    const nameEnd = stringEnd(text, at);
    const from = skipSpace(text, skipSpace(text, nameEnd) + 1);
    const to = valueEnd(text, from);
    found.push([readString(text.slice(at, nameEnd)) ?? '', text.slice(from, to)]);
    at = skipSpace(text, to);
    if (text[at] === ',') at = skipSpace(text, at + 1);
  }
  return found;
}

/** A JSON string, unpaired surrogates replaced as in Go; `undefined` for another kind of value. */
export function readString(text: string): string | undefined {
  const value: unknown = JSON.parse(text);
  return typeof value === 'string' ? value.toWellFormed() : undefined;
}

/**
 * Whether a member's name means a field, as encoding/json folds names: ASCII case, and the two letters
 * outside ASCII whose simple case folding is an ASCII letter (U+017F for s, U+212A for k).
 * @param field in lower case
 */
export function namesField(name: string, field: string): boolean {
  return name.replaceAll('\u017f', 's').toLowerCase() === field;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && ' \t\r\n'.includes(text.charAt(at))) at += 1;
  return at;
}

/** End of the string that begins at `from`, after its closing quote. */
function stringEnd(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

/** End of the value at `from`. Depth costs no stack. @throws RangeError if nested too deeply */
function valueEnd(text: string, from: number): number {
  let depth = 0;
  let at = from;
  while (at < text.length) {
    const letter = text.charAt(at);
    if (letter === '"') {
      at = stringEnd(text, at);
      if (depth === 0) return at;
      continue;
    }
    if (depth === 0 && ',} \t\r\n'.includes(letter)) return at;
    if (letter === '{' || letter === '[') depth += 1;
    if (depth >= maxDepth) throw new RangeError('nested too deeply');
    at += 1;
    if (letter === '}' || letter === ']') {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return at;
}

export class Base64Error extends Error {
  override readonly name = 'Base64Error';
  readonly code = 'malformed';
  readonly temporary = false;
  /** Index of the character at fault. */
  readonly offset: number;
  constructor(offset: number) {
    super(`illegal base64 data at input byte ${offset}`);
    this.offset = offset;
  }
}

/**
 * Decodes base64 as Go's encoding/base64: carriage returns and newlines are skipped anywhere, any other
 * character outside the standard alphabet is an error, and so is wrong padding. (`Buffer.from` accepts nearly
 * everything.)
 * @param padding whether `=` must fill the last group, or must not
 * @throws Base64Error
 */
export function decodeBase64(text: string, padding: 'padded' | 'unpadded'): Buffer {
  const offset = faultOf(text, padding === 'padded');
  if (offset !== undefined) throw new Base64Error(offset);
  return Buffer.from(text, 'base64');
}

/** Position of the error that Go would report (encoding/base64 `decodeQuantum`), if any. */
function faultOf(text: string, padded: boolean): number | undefined {
  /** Letters in the current group of four. */
  let group = 0;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text.charAt(at);
    if (isNewline(letter)) continue;
    if (/[A-Za-z0-9+/]/.test(letter)) {
      group = (group + 1) % 4;
      continue;
    }
    return letter === '=' && padded && group > 1 ? faultOfPadding(text, at, group) : at;
  }
  return group === 1 || (group > 0 && padded) ? text.length - group : undefined;
}

/** The same for the text after the first `=`, at `from`. */
function faultOfPadding(text: string, from: number, group: number): number | undefined {
  let at = skipNewlines(text, from + 1);
  if (group === 2) {
    if (at === text.length) return at;
    if (text[at] !== '=') return at - 1;
    at = skipNewlines(text, at + 1);
  }
  return at < text.length ? at : undefined;
}

function skipNewlines(text: string, from: number): number {
  let at = from;
  while (isNewline(text.charAt(at))) at += 1;
  return at;
}

function isNewline(letter: string): boolean {
  return letter === '\n' || letter === '\r';
}
