/**
 * Go's strict decoding of a document: duplicate and unknown members are refused, and names are case-sensitive
 * (sigs.k8s.io/json).
 *
 * YAML is read as Kubernetes reads it (sigs.k8s.io/yaml): YAML 1.1 as JSON values. `yes`, `on` and `y` are
 * booleans, `0777` and `1_000` numbers, dates strings; `<<` merges. Only the first document counts.
 */
import { parseAllDocuments, type Tags } from 'yaml';
import * as v from 'valibot';
import { items, members } from '../../../src/http/json-text.ts';
import { parseJson, readShape } from '../../../src/http/json.ts';
import { isRecord } from '../../../src/names/values.ts';

/** Configurations and responses are a few levels deep; each level uses the stack. */
const maxDepth = 64;

/** The error in a document. Quotes names of fields, never values. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
}

/** A string; absent and `null` are empty. */
export const text = v.optional(v.string(), '');

export const object = v.custom<object>(isRecord, 'must be an object');

/** A struct; absent and `null` fields have their zero value. */
export function struct<const Entries extends v.ObjectEntries>(entries: Entries) {
  return v.pipe(object, v.strictObject(entries));
}

/**
 * A value as the schema reads it.
 * @param value from `parseJsonValue` or `parseYamlValue`
 * @throws DecodeError for unknown fields, and values of another kind
 */
export function readStrict<const S extends Parameters<typeof readShape>[0]>(
  schema: S,
  value: unknown,
): v.InferOutput<S> {
  return readShape(schema, value, (where, problem) => {
    const path = JSON.stringify(where.replaceAll(/\.(\d+)(?=\.|$)/g, '[$1]'));
    if (problem === 'is not a known field')
      return new DecodeError(`strict decoding error: unknown field ${path}`);
    return new DecodeError(`${where === '' ? 'the document' : path} ${problem}`);
  });
}

/** @param json valid JSON @throws DecodeError for an object with two members of the same name */
export function refuseDuplicates(json: string, path = ''): void {
  const names = new Set<string>();
  for (const [name, value] of members(json) ?? []) {
    const where = path === '' ? name : `${path}.${name}`;
    if (names.has(name))
      throw new DecodeError(`strict decoding error: duplicate field ${JSON.stringify(where)}`);
    names.add(name);
    refuseDuplicates(value, where);
  }
  for (const [index, item] of (items(json) ?? []).entries()) refuseDuplicates(item, `${path}[${index}]`);
}

/** @returns without `null`s; of duplicates the last @throws DecodeError for invalid JSON, without quoting it */
export function parseJsonValue(json: string): unknown {
  const value = parseJson(json);
  if (value === undefined) throw new DecodeError('is not valid JSON');
  return withoutNulls(value, 0);
}

/** Go does not distinguish `null` from an absent value. */
function withoutNulls(value: unknown, depth: number): unknown {
  if (depth > maxDepth) throw new DecodeError(`is nested deeper than ${maxDepth} levels`);
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item, depth + 1));
  if (!isRecord(value)) return typeof value === 'string' ? value.toWellFormed() : (value ?? undefined);
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, withoutNulls(member, depth + 1)]),
  );
}

/** Kubernetes turns these into JSON, which has neither dates nor sexagesimal numbers: they stay text. */
const leftAsText: ReadonlySet<unknown> = new Set(['tag:yaml.org,2002:timestamp', 'TIME']);

/** @returns without `null`s @throws DecodeError for a text that is not YAML or JSON */
export function parseYamlValue(text: string): unknown {
  const [document] = inYaml(() => {
    const documents = parseAllDocuments(text, { version: '1.1', customTags, logLevel: 'silent' });
    return Array.isArray(documents) ? documents : [];
  });
  const [error] = document?.errors ?? [];
  if (error !== undefined) {
    const line = error.linePos?.[0].line;
    const at = line === undefined ? '' : `line ${line}: `;
    throw new DecodeError(`yaml: ${at}${error.code.toLowerCase().replaceAll('_', ' ')}`);
  }
  return withoutNulls(
    inYaml(() => document?.toJS() as unknown),
    0,
  );
}

function customTags(tags: Tags): Tags {
  const isData = (tag: Tags[number]): boolean =>
    typeof tag === 'string' || !(leftAsText.has(tag.tag) || ('format' in tag && leftAsText.has(tag.format)));
  return tags.filter(isData).map(withDigits);
}

/** The library takes `.` and `e5` for numbers. In Go, numbers start with a digit. */
function withDigits(tag: Tags[number]): Tags[number] {
  if (typeof tag === 'string' || tag.collection !== undefined) return tag;
  if (tag.tag !== 'tag:yaml.org,2002:float' || !tag.test || tag.test.test('.inf')) return tag;
  return { ...tag, test: new RegExp(`(?=^[-+]?\\.?[0-9])${tag.test.source}`) };
}

/** The parser is recursive, and the messages of its errors may quote the text. */
function inYaml<T>(act: () => T): T {
  try {
    return act();
  } catch {
    throw new DecodeError(
      'yaml: it has too many levels or aliases, an unknown alias, or a merge without a map',
    );
  }
}
