/**
 * Takes JSON apart without losing what `JSON.parse` drops and Go's decoders need: the members of an object in
 * written order, with duplicates. Values stay JSON text, because most of them are never read.
 *
 * Not `jsonc-parser` 3.3.1: it recurses and fails at 3,000 to 5,000 levels, where Go reads 10,000, and its tree
 * of a hostile Secret of 1 MiB takes 155 MiB, where this takes 8.
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
  const parts = partsOf(text, '{');
  if (parts === undefined) return undefined;
  const found: [string, string][] = [];
  for (let at = 0; at < parts.length; at += 2)
    found.push([readString(parts[at] ?? '""') ?? '', parts[at + 1] ?? '']);
  return found;
}

/** The same for the items of a list. */
export function items(text: string): readonly string[] | undefined {
  return partsOf(text, '[');
}

/** A JSON string, unpaired surrogates replaced as in Go; `undefined` for another kind of value. */
export function readString(text: string): string | undefined {
  const value: unknown = JSON.parse(text);
  return typeof value === 'string' ? value.toWellFormed() : undefined;
}

/** The names and values of an object in turn, or the items of a list. */
function partsOf(text: string, opening: '{' | '['): string[] | undefined {
  const start = skip(text, 0, space);
  if (text[start] !== opening) return undefined;
  const parts: string[] = [];
  let at = skip(text, start + 1, space);
  while (at < text.length && text[at] !== '}' && text[at] !== ']') {
    const end = valueEnd(text, at);
    parts.push(text.slice(at, end));
    at = skip(text, end, `${space},:`);
  }
  return parts;
}

const space = ' \t\r\n';

function skip(text: string, from: number, letters: string): number {
  let at = from;
  while (at < text.length && letters.includes(text.charAt(at))) at += 1;
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
    if (depth === 0 && ',:]} \t\r\n'.includes(letter)) return at;
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
