/**
 * TOML as containerd reads it (go-toml): integers differ from floats, and names of struct fields match in any case. Errors name a
 * line but never quote a value, because these files hold secrets.
 */
import { parse } from 'toml';
import { decodeUtf8, FileError } from '../../../src/files/read.ts';
import { InvalidConfig } from '../config-error.ts';

export type Table = Readonly<Record<string, unknown>>;

/** containerd's own tables are about ten levels deep. */
const maxDepth = 64;

/** @throws InvalidConfig */
export function parseTable(text: string): Table {
  try {
    return parse(text, { bigint: true, maxDepth }) as Table;
  } catch (error) {
    const { line, location } = error as { line?: number; location?: { start?: { line?: number } } };
    const at = line ?? location?.start?.line;
    throw new InvalidConfig(
      'syntax',
      at === undefined ? 'it is not valid TOML' : `line ${at} is not valid TOML`,
    );
  }
}

/**
 * The text of a file.
 * @throws InvalidConfig unless it is UTF-8 without a byte order mark, as go-toml requires
 */
export function tomlText(bytes: Uint8Array): string {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    throw new InvalidConfig('syntax', 'it begins with a byte order mark, which containerd refuses');
  }
  try {
    return decodeUtf8(bytes, 'it');
  } catch (error) {
    if (error instanceof FileError) throw new InvalidConfig('syntax', 'it is not UTF-8 text');
    throw error;
  }
}

export function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** go-toml matches the name of a struct field in any case. All matching values must have its type; the last one counts. */
function valuesOf(table: Table, name: string): unknown[] {
  return Object.entries(table)
    .filter(([key]) => key.toLowerCase() === name)
    .map(([, value]) => value);
}

/** Reads members of a table as fields of a Go struct. They throw InvalidConfig `type` for a value of another type. */
export function fieldsOf(table: Table, where: string) {
  function typed<T>(name: string, expected: string, is: (value: unknown) => value is T): T | undefined {
    const values = valuesOf(table, name);
    if (values.every(is)) return values.at(-1);
    throw new InvalidConfig('type', `${where}${name} must be ${expected}`);
  }
  return {
    text: (name: string) => typed(name, 'a string', isText),
    flag: (name: string) => typed(name, 'true or false', (value) => typeof value === 'boolean'),
    integer: (name: string) => typed(name, 'an integer', (value) => typeof value === 'bigint'),
    texts: (name: string) => typed(name, 'a list of strings', isTexts),
    table: (name: string) => typed(name, 'a table', isTable),
    any: (name: string) => valuesOf(table, name).at(-1),
  };
}

export function isText(value: unknown): value is string {
  return typeof value === 'string';
}

export function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(isText);
}
