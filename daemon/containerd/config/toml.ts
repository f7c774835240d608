/**
 * TOML as containerd reads it (go-toml): integers apart from floats, members of known tables found whatever their case, and
 * errors that name a line but never quote a value, because these files hold secrets.
 */
import { parse } from 'toml';
import { decodeUtf8, FileError } from '../../../src/files/read.ts';

export type Table = Readonly<Record<string, unknown>>;

/** containerd's own tables nest some ten deep; more only serves to exhaust something. */
const maxDepth = 64;

/** A text that go-toml refuses: by its grammar, or because a value has another type than the program's. */
export class TomlRefused extends Error {
  readonly code: 'syntax' | 'type';
  readonly temporary = false;
  constructor(code: 'syntax' | 'type', message: string) {
    super(message);
    this.name = 'TomlRefused';
    this.code = code;
  }
}

/** @throws TomlRefused */
export function parseTable(text: string): Table {
  try {
    return parse(text, { bigint: true, maxDepth }) as Table;
  } catch (error) {
    const { line, location } = error as { line?: number; location?: { start?: { line?: number } } };
    const at = line ?? location?.start?.line;
    throw new TomlRefused(
      'syntax',
      at === undefined ? 'it is not valid TOML' : `line ${at} is not valid TOML`,
    );
  }
}

/**
 * The text of a file.
 * @throws TomlRefused for what is no UTF-8 or begins with a byte order mark, which go-toml does not take
 */
export function tomlText(bytes: Uint8Array): string {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    throw new TomlRefused('syntax', 'it begins with a byte order mark, which containerd does not take');
  }
  try {
    return decodeUtf8(bytes, 'it');
  } catch (error) {
    if (error instanceof FileError) throw new TomlRefused('syntax', 'it is not UTF-8 text');
    throw error;
  }
}

export function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/**
 * The values that go-toml takes for a field of a struct: those under its name in whatever case. All must have its type, and the
 * last one counts.
 */
function valuesOf(table: Table, name: string): unknown[] {
  return Object.entries(table)
    .filter(([key]) => key.toLowerCase() === name)
    .map(([, value]) => value);
}

/** Reads members of a table with the type that a Go program gives them. @throws TomlRefused `type` */
export function fieldsOf(table: Table, where: string) {
  function typed<T>(name: string, expected: string, is: (value: unknown) => value is T): T | undefined {
    const values = valuesOf(table, name);
    if (values.every(is)) return values.at(-1);
    throw new TomlRefused('type', `${where}${name} must be ${expected}`);
  }
  return {
    text: (name: string) => typed(name, 'a text', isText),
    flag: (name: string) => typed(name, 'true or false', (value) => typeof value === 'boolean'),
    integer: (name: string) => typed(name, 'an integer', (value) => typeof value === 'bigint'),
    texts: (name: string) => typed(name, 'a list of texts', isTexts),
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

/** A value as Go's `%v` prints it. */
export function goValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(goValue).join(' ')}]`;
  if (value instanceof Date) return value.toISOString();
  if (isTable(value)) {
    const keys = Object.keys(value).toSorted();
    return `map[${keys.map((key) => `${key}:${goValue(value[key])}`).join(' ')}]`;
  }
  return String(value);
}

/** The type of a value as Go's `%T` prints it. */
export function goType(value: unknown): string {
  if (typeof value === 'bigint') return 'int64';
  if (typeof value === 'number') return 'float64';
  if (typeof value === 'boolean') return 'bool';
  if (Array.isArray(value)) return '[]interface {}';
  if (value instanceof Date) return 'time.Time';
  return isTable(value) ? 'map[string]interface {}' : 'string';
}
