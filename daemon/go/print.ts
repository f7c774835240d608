/** Values as Go's `fmt` prints them: `%q`, `%v`, `%T`. */

const shortEscapes: Readonly<Record<string, string>> = {
  '\u0007': String.raw`\a`,
  '\b': String.raw`\b`,
  '\f': String.raw`\f`,
  '\n': String.raw`\n`,
  '\r': String.raw`\r`,
  '\t': String.raw`\t`,
  '\v': String.raw`\v`,
  '"': String.raw`\"`,
  '\\': String.raw`\\`,
};

/** `%q`, `strconv.Quote`. */
export function goQuote(text: string): string {
  const escaped = text.replaceAll(/["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, (letter) => {
    const code = letter.codePointAt(0) ?? 0;
    if (code < 0x80) return shortEscapes[letter] ?? `\\x${hex(code, 2)}`;
    return code > 0xffff ? `\\U${hex(code, 8)}` : `\\u${hex(code, 4)}`;
  });
  return `"${escaped}"`;
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0');
}

/** `%v` of a value from a TOML file. */
export function goValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(goValue).join(' ')}]`;
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'object' && value !== null) {
    const sorted = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
    return `map[${sorted.map(([key, item]) => `${key}:${goValue(item)}`).join(' ')}]`;
  }
  return String(value);
}

/** `%T` of a value from a TOML file. */
export function goType(value: unknown): string {
  if (typeof value === 'bigint') return 'int64';
  if (typeof value === 'number') return 'float64';
  if (typeof value === 'boolean') return 'bool';
  if (Array.isArray(value)) return '[]interface {}';
  if (value instanceof Date) return 'time.Time';
  return typeof value === 'object' && value !== null ? 'map[string]interface {}' : 'string';
}
