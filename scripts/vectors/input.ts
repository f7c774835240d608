/** Reading members of a vector's input; a missing one is a fault of the vector or its handler, never an answer. */
import type { Input } from './handler.ts';

export function text(input: Input, member: string): string {
  const value = input[member];
  if (typeof value !== 'string') throw new TypeError(`input.${member} is not a string`);
  return value;
}

export function texts(input: Input, member: string): string[] {
  const value = input[member];
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) {
    throw new TypeError(`input.${member} is not a list of texts`);
  }
  return value;
}

export function flag(input: Input, member: string): boolean {
  const value = input[member];
  if (typeof value !== 'boolean') throw new TypeError(`input.${member} is not a boolean`);
  return value;
}

export function list(input: Input, member: string): unknown[] {
  const value = input[member];
  if (!Array.isArray(value)) throw new TypeError(`input.${member} is not a list`);
  return value;
}

export function object(input: Input, member: string): Input {
  const value = input[member];
  if (!isObject(value)) throw new TypeError(`input.${member} is not an object`);
  return value;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
