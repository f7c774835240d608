/** Checks parsed JSON from others against a schema. Messages come from the schema and quote no value. */
import {
  safeParse,
  type BaseIssue,
  type BaseSchema,
  type ErrorMessage,
  type InferOutput,
  type IssuePathItem,
} from 'valibot';

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
