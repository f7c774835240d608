/** TOML files that a flag names: settings at the top, and a list of tables. */
import { isRecord } from '../../src/names/values.ts';
import type { TomlDocument } from '../../src/policy/configuration/toml-document.ts';
import { parseTomlDocument, TomlError } from '../../src/policy/configuration/toml.ts';
import { UsageError } from './exit.ts';

export type TomlTable = Readonly<Record<string, unknown>>;

export interface TomlForm {
  /** Name of the list: `node` for `[[node]]`. */
  readonly list: string;
  readonly maxTables: number;
  /** Known keys of each table. */
  readonly fields: readonly string[];
  /** Known keys at the top, besides the list. */
  readonly settings?: readonly string[];
}

/** Makes the error for a table, which names its line. */
export type WrongTable = (problem: string) => UsageError;

/**
 * Reads the tables of a list one by one.
 * @throws UsageError with file and line
 */
export function readTomlTables<T>(
  text: string,
  file: string,
  { list, maxTables, fields, settings = [] }: TomlForm,
  read: (table: TomlTable, wrong: WrongTable, line: number) => T,
): { readonly document: TomlTable; readonly tables: readonly T[] } {
  const parsed = tomlOf(text, file);
  const document = parsed.value;
  const unknown = unknownKey(document, [...settings, list]);
  if (unknown !== undefined) throw new UsageError(`${file}: ${unknown}`);
  const { [list]: tables = [] } = document;
  if (!Array.isArray(tables))
    throw new UsageError(`${file}: ${list} must be a list of tables: write [[${list}]]`);
  if (tables.length > maxTables)
    throw new UsageError(`${file}: has more than ${maxTables} tables [[${list}]]`);
  const all = tables.map((table: unknown, index) => {
    const line = parsed.lineOf([list, index]);
    const wrong: WrongTable = (problem) => new UsageError(`${file}:${line}: ${problem}`);
    if (!isRecord(table)) throw wrong(`${list} must be a table: write [[${list}]]`);
    const unknown = unknownKey(table, fields);
    if (unknown !== undefined) throw wrong(unknown);
    return read(table, wrong, line);
  });
  return { document, tables: all };
}

function unknownKey(table: TomlTable, known: readonly string[]): string | undefined {
  const unknown = Object.keys(table).find((key) => !known.includes(key));
  return unknown === undefined
    ? undefined
    : `unknown key ${JSON.stringify(unknown)}; known: ${known.join(', ')}`;
}

function tomlOf(text: string, file: string): TomlDocument {
  try {
    return parseTomlDocument(text);
  } catch (error) {
    if (error instanceof TomlError) throw new UsageError(`${file}:${error.where}: ${error.message}`);
    throw error;
  }
}
