/** Kubernetes objects in YAML or JSON. A file may hold Secrets, so no message quotes its content. */
import { isNode, LineCounter, parseAllDocuments, type Document as YamlDocument } from 'yaml';
import { FileError, decodeUtf8, readBounded } from '../../src/files/read.ts';
import type { Pod, Secret } from '../../src/kube/api/objects.ts';
import { isRecord } from '../../src/names/values.ts';
import type { JsonObject } from '../../src/http/json.ts';
import { UsageError } from '../program/exit.ts';

/** Seven times what an API server takes as one object. */
export const maxDocumentBytes = 10 * 1024 * 1024;

export const standardInput = 'standard input';

/** Real files repeat some anchors; a "billion laughs" needs more than this many expansions. */
const maxAliasCount = 100;

export interface FoundObject {
  readonly value: unknown;
  /** Path as given; `standard input` for `-`. */
  readonly file: string;
  /** First line of its document, from 1; 0: an object of the cluster. */
  readonly line: number;
  /** Node of a pod of the cluster that runs already, while `value` has none. */
  readonly node?: string;
  readonly pods?: readonly Pod[];
}

/** Keys and indices from the top of a document to a value in it. */
export type Steps = readonly (string | number)[];

export interface FoundDocument {
  readonly value: unknown;
  /** Counts from 1. */
  readonly line: number;
  /** The line of a value, or of its nearest parent if it is not written there. In JSON, every value has line 1. */
  lineOf(path: Steps): number;
}

export interface NamedText {
  readonly file: string;
  readonly text: string;
}

/** Reads a file, or standard input for `-`. @throws FileError */
export async function readText(path: string, stdin: NodeJS.ReadableStream): Promise<NamedText> {
  const maxBytes = maxDocumentBytes;
  const isInput = path === '-';
  const file = isInput ? standardInput : path;
  const bytes = await (isInput ? readStandardInput(stdin, maxBytes) : readBounded(path, { maxBytes }));
  return { file, text: decodeUtf8(bytes, file) };
}

/** The objects in a text, lists taken apart. @throws UsageError with file, line and column */
export function parseObjects({ file, text }: NamedText): readonly FoundObject[] {
  return parseDocuments({ file, text }).flatMap(({ value, line }) =>
    nestable(file, () => itemsOf(value)).map((item) => ({ value: item, file, line })),
  );
}

/** The documents that are not empty, lists as they are. @throws UsageError with file, line and column */
export function parseDocuments({ file, text }: NamedText): readonly FoundDocument[] {
  const lineCounter = new LineCounter();
  const lineAt = (offset: number): number => lineCounter.linePos(offset).line;
  // Every JSON text is YAML as well, but reading it as such takes far longer.
  if (/^\s*[{[]/.test(text)) {
    try {
      return [{ value: JSON.parse(text) as unknown, line: 1, lineOf: () => 1 }];
    } catch {
      // YAML in flow style, or broken; the YAML parser tells where.
    }
  }
  const placeOf = (offset: number): string => {
    const { line, col } = lineCounter.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  const documents = nestable(file, () =>
    parseAllDocuments(text, { lineCounter, prettyErrors: false, merge: true, logLevel: 'silent' }),
  );
  return [...documents].flatMap((document) => {
    const [error] = document.errors;
    if (error) throw new UsageError(`${placeOf(error.pos[0])}: ${withoutQuotes(error.message)}`);
    const offset = document.contents?.range?.[0] ?? document.range[0];
    const value = valueOf(document, placeOf(offset));
    if (value === null || value === undefined) return [];
    const lineOf = (path: Steps): number => lineAt(offsetOf(document, path) ?? offset);
    return [{ value, line: lineAt(offset), lineOf }];
  });
}

/** A value behind an alias or a merge has the place where that is used. */
function offsetOf(document: YamlDocument, path: Steps): number | undefined {
  const nodes = path.map((_, index) => document.getIn(path.slice(0, index + 1), true));
  const node = nodes.findLast((each) => isNode(each));
  return node?.range?.[0];
}

function valueOf(document: YamlDocument, where: string): unknown {
  return nestable(where, () => {
    let value: unknown;
    try {
      value = document.toJS({ maxAliasCount }) as unknown;
    } catch (error) {
      if (error instanceof RangeError || !(error instanceof Error)) throw error;
      throw new UsageError(`${where}: ${withoutQuotes(error.message)}`);
    }
    if (containsItself(value)) throw new UsageError(`${where}: an anchor is inside the value that it names`);
    return value;
  });
}

/** `&a [*a]` is valid YAML, but no JSON. */
function containsItself(value: unknown, above = new Set<object>(), done = new Set<object>()): boolean {
  if (typeof value !== 'object' || value === null || done.has(value)) return false;
  if (above.has(value)) return true;
  above.add(value);
  const found = Object.values(value).some((each) => containsItself(each, above, done));
  above.delete(value);
  done.add(value);
  return found;
}

/** The parser calls itself for each level of nesting. */
function nestable<T>(where: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(`${where}: is nested too deeply`);
    throw error;
  }
}

/** The parser quotes content behind a colon or in quotes. */
function withoutQuotes(message: string): string {
  return message.split(/["'`\n]|: /, 1)[0]?.trim() ?? 'cannot be read';
}

/** The items of a list, also of lists in it, else the value itself. */
function itemsOf(value: unknown): readonly unknown[] {
  return listItems(value)?.flatMap(itemsOf) ?? [value];
}

/** The items of a `List`. Those of a `PodList` may have no kind. @returns undefined for another value */
export function listItems(value: unknown): readonly unknown[] | undefined {
  if (!isRecord(value) || typeof value['kind'] !== 'string' || !value['kind'].endsWith('List'))
    return undefined;
  const { kind, apiVersion, items } = value;
  if (kind === 'List' && (items === null || items === undefined)) return [];
  if (!Array.isArray(items)) return undefined;
  const itemKind = kind.slice(0, -'List'.length);
  if (itemKind === '') return items as readonly unknown[];
  return items.map((item: unknown) => (isRecord(item) ? { apiVersion, kind: itemKind, ...item } : item));
}

/** @throws FileError `too-large` */
export async function readStandardInput(stream: NodeJS.ReadableStream, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk);
    length += bytes.length;
    if (length > maxBytes) {
      const message = `is larger than ${maxBytes} bytes, the limit for input`;
      throw new FileError('too-large', standardInput, message);
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

export function isSecret(value: unknown): value is JsonObject {
  return isRecord(value) && value['kind'] === 'Secret';
}

/**
 * A Secret as the API server would store it: `stringData` is written into `data` (kubernetes
 * pkg/registry/core/secret). Whatever is no text is left out.
 */
export function storedSecret(written: JsonObject): Secret {
  const { metadata, type, data, stringData } = written;
  const stored = texts(data);
  for (const [key, value] of Object.entries(texts(stringData))) {
    stored[key] = Buffer.from(value).toString('base64');
  }
  const { name, namespace } = texts(metadata);
  return {
    kind: 'Secret',
    metadata: { ...(name !== undefined && { name }), ...(namespace !== undefined && { namespace }) },
    ...(typeof type === 'string' && { type }),
    data: stored,
  };
}

export function texts(value: unknown): Record<string, string> {
  if (!isRecord(value)) return {};
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, entry]) => (typeof entry === 'string' ? [[key, entry]] : [])),
  );
}
