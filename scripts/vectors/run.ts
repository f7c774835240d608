/** Runs one case and compares its result, as `handler.ts` defines. */
import { isDeepStrictEqual } from 'node:util';
import { notCompared, type Handler, type Vector } from './handler.ts';
import { isObject } from './input.ts';
import { messageOf } from '../../src/names/printable.ts';

export interface Outcome {
  readonly passed: boolean;
  readonly actual: unknown;
  /** Members that were not compared; undefined: the whole case was not. */
  readonly left: readonly string[] | undefined;
}

/** Runs one case. Never throws: a handler's error is an outcome. */
export async function run(handler: Handler, vector: Vector): Promise<Outcome> {
  try {
    const found = await handler(vector.input, vector);
    if (found === notCompared) return { passed: true, actual: undefined, left: undefined };
    const { expected, left } = compared(found, vector.expected);
    const actual = plain(found);
    return { passed: matches(actual, expected), actual, left };
  } catch (error) {
    if (isFault(error)) return { passed: false, actual: `fault: ${messageOf(error)}`, left: [] };
    const refused = { ok: false, error: messageOf(error) };
    return { passed: isRefusal(vector.expected, refused.error), actual: refused, left: [] };
  }
}

function compared(found: unknown, expected: unknown): { expected: unknown; left: readonly string[] } {
  if (!isObject(found) || !isObject(expected)) return { expected, left: [] };
  const left = Object.keys(expected).filter((member) => found[member] === notCompared);
  const rest = Object.entries(expected).filter(([member]) => !left.includes(member));
  return { expected: Object.fromEntries(rest), left };
}

/** Equal in all members; `errorContains` in `expected` matches an `error` that contains its text. */
function matches(actual: unknown, expected: unknown): boolean {
  if (!isObject(expected) || !isObject(actual) || typeof expected['errorContains'] !== 'string') {
    return isDeepStrictEqual(actual, expected);
  }
  const { errorContains, ...rest } = expected;
  const { error, ...others } = actual;
  return typeof error === 'string' && error.includes(errorContains) && isDeepStrictEqual(others, rest);
}

function isRefusal(expected: unknown, message: string): boolean {
  if (!isObject(expected)) return false;
  const result: Record<string, unknown> = {};
  if ('ok' in expected) result['ok'] = false;
  if ('error' in expected || 'errorContains' in expected) result['error'] = message;
  return Object.keys(result).length > 0 && matches(result, expected);
}

function isFault(error: unknown): boolean {
  return (
    !(error instanceof Error) ||
    error instanceof TypeError ||
    error instanceof RangeError ||
    error instanceof ReferenceError ||
    error instanceof SyntaxError
  );
}

/** As in JSON: no undefined members, no classes. */
function plain(value: unknown): unknown {
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);
}
