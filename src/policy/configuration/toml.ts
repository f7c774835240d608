/** Reads and writes TOML. Every error of the parser becomes a `TomlError`. */
import { messageOf } from '../../names/printable.ts';
import type { TomlValue } from '../settings/setting.ts';
import { TomlDocument } from './toml-document.ts';

/** No setting nests deeper than five. The parser's default is 500. */
const maxDepth = 16;

export class TomlError extends Error {
  readonly where: number;
  constructor(message: string, line: number) {
    super(message);
    this.name = 'TomlError';
    this.where = line;
  }
}

/** @throws TomlError */
export function parseToml(text: string): TomlDocument {
  try {
    return new TomlDocument(text, { maxDepth });
  } catch (error) {
    const line = lineOf(error);
    throw new TomlError(unquotedIn(text.split('\n')[line - 1] ?? '') ?? reasonOf(error), line);
  }
}

/** The most frequent error: `key = arm64`, as in YAML. The grammar only knows that a letter is wrong. */
function unquotedIn(line: string): string | undefined {
  const value = /^[^=#'"]*=\s*([a-z_./][\w./:-]{0,63})\s*(?:#.*)?$/i.exec(line)?.[1];
  if (value === undefined || ['true', 'false', 'inf', 'nan'].includes(value)) return undefined;
  return `text needs quotes: write ${quoted(value)}`;
}

/** A value on one line. */
export function formatToml(value: TomlValue): string {
  if (typeof value === 'string') return quoted(value);
  if (typeof value !== 'object') return String(value);
  if (isList(value)) return `[${value.map(formatToml).join(', ')}]`;
  const fields = Object.entries(value).map(([key, field]) => `${formatKey(key)} = ${formatToml(field)}`);
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
}

/** Writes one step of a key, quoted if necessary. */
export function formatKey(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : quoted(key);
}

// JSON's escapes are all TOML's too; DEL is the one character that JSON leaves bare and TOML forbids.
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll('\u007F', '\\u007F');
}

function isList(value: TomlValue): value is readonly TomlValue[] {
  return Array.isArray(value);
}

/** Errors of the grammar list every character that could follow. They are cut. */
const maxReason = 160;

function reasonOf(error: unknown): string {
  const message = messageOf(error);
  const found = /but (.*) found\.$/s.exec(message)?.[1];
  const reason = found === undefined ? message : `${found} was not expected here`;
  return reason.length > maxReason ? `${reason.slice(0, maxReason)}…` : reason;
}

/** Errors of the grammar have a location, all others a line. */
function lineOf(error: unknown): number {
  const place = error as { line?: unknown; location?: { start?: { line?: unknown } } };
  const line = place.line ?? place.location?.start?.line;
  return typeof line === 'number' ? line : 1;
}
