/** What the readers of custom resources share: fields of unchecked objects. */
import { isRecord } from '../../names/architecture.ts';
import { checkArchitecture } from '../value-kinds/architectures.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Reads a field. `undefined`: it is absent, or wrong, which is a problem. */
export function field<T>(
  parent: Fields,
  path: string,
  is: (value: unknown) => value is T,
  message: string,
  problems: string[],
): T | undefined {
  const value = parent[path.slice(path.lastIndexOf('.') + 1)];
  if (isUnset(value)) return undefined;
  if (is(value)) return value;
  problems.push(`${path} must be ${message}`);
  return undefined;
}

/** An absent section equals an empty one. */
export function section(parent: Fields, path: string, problems: string[]): Fields {
  return field(parent, path, isRecord, 'an object', problems) ?? {};
}

/** Adds a problem if it is none. */
export function isArchitecture(value: unknown, path: string, problems: string[]): value is string {
  const problem =
    typeof value === 'string' && value !== '' ? checkArchitecture(value) : 'must be an architecture';
  if (problem !== undefined) problems.push(`${path}: ${problem}`);
  return problem === undefined;
}

export function isIntegerWithin(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most;
}

/** The API server removes `null` if a schema forbids it. Older objects can still have one. */
export function isUnset(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}
