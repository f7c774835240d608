/** JSON from untrusted servers. The reader limits bytes; this limits structure before parsing. */
import {
  safeParse,
  type BaseIssue,
  type BaseSchema,
  type ErrorMessage,
  type InferOutput,
  type IssuePathItem,
} from 'valibot';
import { isRecord } from '../names/values.ts';

/** Manifests, configs and token responses nest at most five deep; hostile ones nest a million deep. */
const maxDepth = 64;

/** 1,000 children with 20 values each. 4 MiB of `{},` have 1,400,000: 250 ms and 85 MiB to parse. */
export const maxValues = 20_000;

/** A document that cannot be used. The message holds nothing of the document. */
export class InvalidDocument extends Error {
  override readonly name = 'InvalidDocument';
}

/** A document with too many values. */
export class TooManyValues extends InvalidDocument {}

export type JsonObject = Readonly<Record<string, unknown>>;

/** @throws InvalidDocument unless it is a JSON object in UTF-8 that is not nested too deeply; TooManyValues */
export function parseObject(bytes: Uint8Array): JsonObject {
  const { values, depth } = sizeOfJson(bytes);
  if (depth > maxDepth) throw new InvalidDocument(`it nests deeper than ${maxDepth}`);
  if (values > maxValues) throw new TooManyValues(`it has more than ${maxValues} values`);
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new InvalidDocument('it is not JSON in UTF-8');
  }
  const object = asObject(value);
  if (!object) throw new InvalidDocument('it is not a JSON object');
  return object;
}

/** The value of a short text; `undefined` if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function asObject(value: unknown): JsonObject | undefined {
  return isRecord(value) ? value : undefined;
}

/** Longer than any name that is compared. */
const maxTextLength = 256;

/** A text of limited length, or undefined. */
export function asText(value: unknown): string | undefined {
  return typeof value === 'string' && value.length <= maxTextLength ? value : undefined;
}

export interface JsonSize {
  readonly values: number;
  /** Members of objects. */
  readonly keys: number;
  readonly depth: number;
}

const [quote, backslash, comma, colon, openBrace, closeBrace, openBracket, closeBracket] =
  Buffer.from('"\\,:{}[]');

/** Counts what a JSON text has, before it is parsed. One pass over the bytes outside of strings. */
export function sizeOfJson(bytes: Uint8Array): JsonSize {
  let values = 1;
  let keys = 0;
  let level = 0;
  let depth = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === quote) {
      for (at += 1; at < bytes.length && bytes[at] !== quote; at += 1) if (bytes[at] === backslash) at += 1;
    } else if (byte === comma) values += 1;
    else if (byte === colon) keys += 1;
    else if (byte === openBrace || byte === openBracket) {
      values += 1;
      level += 1;
      depth = Math.max(depth, level);
    } else if (byte === closeBrace || byte === closeBracket) level -= 1;
  }
  return { values, keys, depth };
}

type Schema = BaseSchema<unknown, unknown, BaseIssue<unknown>>;

/** Enough of a misspelled field's name to find it. */
const maxFieldLength = 64;

const kinds: Readonly<Record<string, string>> = {
  Object: 'an object',
  Array: 'a list',
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
};

/**
 * Checks parsed JSON from others against a schema. Messages come from the schema and quote no value.
 * @param fail makes the error; `where` is the path of the first wrong field, such as `images.0.image`, and
 *   empty for the whole value
 * @returns the value as the schema reads it
 */
export function readShape<const S extends Schema>(
  schema: S,
  value: unknown,
  fail: (where: string, problem: string) => Error,
): InferOutput<S> {
  const result = safeParse(schema, value, { abortEarly: true, message });
  if (result.success) return result.output;
  const [issue] = result.issues;
  throw fail((issue.path ?? []).map(step).join('.'), issue.message);
}

function step({ key }: IssuePathItem): string {
  const text = String(key);
  return /^[\w-]{1,64}$/.test(text) ? text : JSON.stringify(text.slice(0, maxFieldLength));
}

/** Valibot's own messages quote the value. */
const message: ErrorMessage<BaseIssue<unknown>> = ({ type, expected, path }) => {
  if (path?.at(-1)?.origin === 'key') return expected === 'never' ? 'is not a known field' : 'is missing';
  if (type.endsWith('_length')) return `must have a length of ${expected}`;
  if (type === 'picklist') return `must be one of ${expected?.slice(1, -1).replaceAll(' | ', ', ')}`;
  return `must be ${kinds[expected ?? ''] ?? expected}`;
};
