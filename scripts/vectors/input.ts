/** Reads members of a vector's input. A missing one is a defect of the vector or handler, not a result. */
import type { Input } from './handler.ts';

/** Reads a member that must have a type. */
function reader<T>(kind: string, isIt: (value: unknown) => value is T): (input: Input, member: string) => T {
  return (input, member) => {
    const value = input[member];
    if (!isIt(value)) throw new TypeError(`input.${member} is not a ${kind}`);
    return value;
  };
}

export const text = reader('string', (value) => typeof value === 'string');
export const number = reader('number', (value) => typeof value === 'number');
export const flag = reader('boolean', (value) => typeof value === 'boolean');
export const list = reader('list', (value): value is unknown[] => Array.isArray(value));
export const texts = reader(
  'list of strings',
  (value): value is string[] => Array.isArray(value) && value.every((item) => typeof item === 'string'),
);
export const object = reader('object', isObject);

/** An item of a list that must be an object. */
export function itemOf(value: unknown): Input {
  if (!isObject(value)) throw new TypeError('an item of the input is not an object');
  return value;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
