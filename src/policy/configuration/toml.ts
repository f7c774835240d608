/** Reads and writes TOML. Every error of the parser becomes a `TomlError`. */
import type { ParseOptions } from 'toml';
import compiler from 'toml/lib/compiler.js';
import parser, { type TomlNode } from 'toml/lib/parser.js';
import { messageOf } from '../../names/printable.ts';
import type { Path, TomlValue } from '../settings/setting.ts';

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
    const line = lineOfError(error) ?? 1;
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

/** Errors of the grammar have a location, most others a line. */
export function lineOfError(error: unknown): number | undefined {
  const place = error as { line?: unknown; location?: { start?: { line?: unknown } } };
  const line = place.line ?? place.location?.start?.line;
  return typeof line === 'number' ? line : undefined;
}

/**
 * A TOML text, parsed once: its value, the line of each key, and its table headers in their order. `parse` of
 * `toml` returns the value only, so its two steps are taken here: the nodes of the first have offsets.
 */
export class TomlDocument {
  /** Tables have no prototype. */
  readonly value: Readonly<Record<string, unknown>>;
  readonly #text: string;
  readonly #nodes: readonly TomlNode[];
  #lines: ReadonlyMap<string, number> | undefined;

  /** @throws the parser's errors, which quote the text */
  constructor(text: string, options: ParseOptions) {
    this.#text = text;
    this.#nodes = parser.parse(text, options);
    this.value = compiler.compile(this.#nodes, text, options);
  }

  /** The keys of each header in order: `[a."b".c]` as `['a', 'b', 'c']`; without arrays of tables (`[[a]]`). */
  get headers(): readonly (readonly string[])[] {
    return this.#nodes.flatMap(({ type, value }) => (type === 'ObjectPath' ? [value as string[]] : []));
  }

  /** @returns the line of a path, or that of the nearest table around it, counted from 1 */
  lineOf(path: Path): number {
    this.#lines ??= linesOf(this.#text, this.#nodes);
    for (let length = path.length; length > 0; length--) {
      const line = this.#lines.get(identity(path.slice(0, length)));
      if (line !== undefined) return line;
    }
    return 1;
  }
}

function linesOf(text: string, nodes: readonly TomlNode[]): ReadonlyMap<string, number> {
  const lines = new Map<string, number>();
  /** Number of `[[name]]` so far, by path. */
  const counts = new Map<string, number>();
  let line = 1;
  let at = 0;

  // Nodes come in the order of the text.
  function note(path: Path, offset: number): void {
    while (at < offset) if (text[at++] === '\n') line++;
    const id = identity(path);
    if (!lines.has(id)) lines.set(id, line);
  }

  function header({ type, value, offset }: TomlNode): Path {
    const keys = value as readonly string[];
    const path: (string | number)[] = [];
    for (const [index, key] of keys.entries()) {
      path.push(key);
      note(path, offset);
      const id = identity(path);
      const count = counts.get(id) ?? 0;
      const isNew = type === 'ArrayPath' && index === keys.length - 1;
      if (isNew) counts.set(id, count + 1);
      // A header inside an array of tables refers to its newest table.
      if (isNew || count > 0) path.push(isNew ? count : count - 1);
      note(path, offset);
    }
    return path;
  }

  function pair(table: Path, { key, value, offset }: TomlNode): void {
    for (const index of key.keys()) note([...table, ...key.slice(0, index + 1)], offset);
    inside([...table, ...key], value as TomlNode);
  }

  function inside(path: Path, { type, value }: TomlNode): void {
    if (type === 'InlineTable') for (const each of value as TomlNode[]) pair(path, each);
    if (type !== 'Array') return;
    for (const [index, item] of (value as TomlNode[]).entries()) {
      note([...path, index], item.offset);
      inside([...path, index], item);
    }
  }

  let table: Path = [];
  for (const node of nodes) {
    if (node.type === 'Assign') pair(table, node);
    else table = header(node);
  }
  return lines;
}

function identity(path: Path): string {
  return JSON.stringify(path);
}
