/**
 * TOML as container runtimes read it (Go): integers differ from floats, and names of struct fields match in any
 * case. Errors name files, lines and settings but never quote a value, because these files hold secrets.
 */
import { DockerConfigError } from '../src/credentials/docker/docker-config.ts';
import { lineOfError, TomlDocument } from '../src/policy/configuration/toml.ts';
import { isTable } from '../src/policy/value-kinds/plain.ts';
import { decodeUtf8, FileError } from '../src/files/read.ts';
import { isText } from '../src/names/values.ts';

/** The runtime refuses the content of a file. */
export class InvalidConfig extends Error {
  override readonly name = 'InvalidConfig';
}

/** A file that makes the runtime's start or its pulls fail. */
export class ConfigFileError extends Error {
  override readonly name = 'ConfigFileError';
  readonly where: string;
  readonly reason: string;
  constructor(where: string, reason: string, cause?: unknown) {
    super(`${where}: ${reason}`, cause === undefined ? undefined : { cause });
    this.where = where;
    this.reason = reason;
  }
}

export function invalid(message: string): InvalidConfig {
  return new InvalidConfig(message);
}

/** Reads a file, or a directory. @throws ConfigFileError if it is unreadable, or has invalid content */
export async function inFile<T>(path: string, read: () => T | Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof FileError) throw new ConfigFileError(path, error.reason, error);
    const isInvalid = error instanceof InvalidConfig || error instanceof DockerConfigError;
    throw isInvalid ? new ConfigFileError(path, error.message, error) : error;
  }
}

export type Table = Readonly<Record<string, unknown>>;

/** The runtimes' own tables are about ten levels deep. */
const maxDepth = 64;

/** @throws InvalidConfig */
export function parseTable(text: string): Table {
  return parseTomlDocument(text).value;
}

/** @throws InvalidConfig */
export function parseTomlDocument(text: string): TomlDocument {
  try {
    return new TomlDocument(text, { bigint: true, maxDepth });
  } catch (error) {
    const line = lineOfError(error);
    const what = line === undefined ? 'it' : `line ${line}`;
    throw invalid(`${what} is not valid TOML`);
  }
}

/** Text of a file of containerd. As in go-toml: UTF-8 without a byte order mark. @throws InvalidConfig */
export function tomlText(bytes: Uint8Array): string {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    throw invalid('it begins with a byte order mark, which containerd refuses');
  }
  try {
    return decodeUtf8(bytes, 'it');
  } catch (error) {
    if (error instanceof FileError) throw invalid('it is not UTF-8 text');
    throw error;
  }
}

/** Reads the members of a table, which are tables too; throws InvalidConfig for another value. */
export function tablesOf<T>(
  tables: Table | undefined,
  where: string,
  read: (table: Table, where: string) => T,
): Map<string, T> {
  return new Map(
    Object.entries(tables ?? {}).map(([name, table]) => {
      if (!isTable(table)) throw invalid(`${where}.${name} must be a table`);
      return [name, read(table, `${where}.${name}.`)];
    }),
  );
}

/** go-toml matches struct fields in any case. All matching values need the type; the last counts. */
function valuesOf(table: Table, name: string): unknown[] {
  return Object.entries(table)
    .filter(([key]) => key.toLowerCase() === name)
    .map(([, value]) => value);
}

/** Members of a table as fields of a Go struct. @throws InvalidConfig for another type */
export function fieldsOf(table: Table, where: string) {
  function typed<T>(name: string, expected: string, is: (value: unknown) => value is T): T | undefined {
    const values = valuesOf(table, name);
    if (values.every(is)) return values.at(-1);
    throw invalid(`${where}${name} must be ${expected}`);
  }
  return {
    text: (name: string) => typed(name, 'a string', isText),
    flag: (name: string) => typed(name, 'true or false', (value) => typeof value === 'boolean'),
    integer: (name: string) => typed(name, 'an integer', (value) => typeof value === 'bigint'),
    texts: (name: string) => typed(name, 'a list of strings', isTexts),
    tables: (name: string) => typed(name, 'a list of tables', isTables) ?? [],
    table: (name: string) => typed(name, 'a table', isTable),
    any: (name: string) => valuesOf(table, name).at(-1),
  };
}

function isTables(value: unknown): value is Table[] {
  return Array.isArray(value) && value.every(isTable);
}

export function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(isText);
}
