/** Fields of unchecked custom resources. What is wrong is collected as problems. */
import { isRecord } from '../../names/values.ts';
import { parseDuration } from '../../names/duration.ts';
import { readSelector, type Selector } from '../effective/label-selector.ts';
import { checkArchitecture } from '../value-kinds/architectures.ts';

export class Fields {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #path: string;
  readonly #problems: string[];

  constructor(fields: object, problems: string[], path = '') {
    this.#fields = fields as Readonly<Record<string, unknown>>;
    this.#path = path;
    this.#problems = problems;
  }

  /** Unchecked. The API server removes `null` if a schema forbids it; older objects can have one. */
  raw(key: string): unknown {
    return this.#fields[key] ?? undefined;
  }

  problem(key: string, text: string): undefined {
    this.#problems.push(`${this.pathOf(key)} ${text}`);
    return undefined;
  }

  pathOf(key: string): string {
    return `${this.#path}${key}`;
  }

  /** @returns `undefined`: it is absent, or wrong, which is a problem */
  read<T>(key: string, form: string, parse: (value: unknown) => T | undefined): T | undefined {
    const value = this.raw(key);
    return value === undefined ? undefined : (parse(value) ?? this.problem(key, `must be ${form}`));
  }

  /** An absent section equals an empty one. */
  section(key: string): Fields {
    const fields = this.read(key, 'an object', (value) => (isRecord(value) ? value : undefined)) ?? {};
    return new Fields(fields, this.#problems, `${this.pathOf(key)}.`);
  }

  boolean(key: string): boolean | undefined {
    return this.read(key, 'true or false', (value) => (typeof value === 'boolean' ? value : undefined));
  }

  integer(key: string, least: number, most: number): number | undefined {
    return this.read(key, `a whole number from ${least} to ${most}`, (value) =>
      isIntegerWithin(value, least, most) ? value : undefined,
    );
  }

  oneOf<T extends string>(key: string, values: readonly T[]): T | undefined {
    return this.read(key, `one of ${values.join(', ')}`, (value) => values.find((each) => each === value));
  }

  /** Milliseconds. */
  duration(key: string): number | undefined {
    return this.read(key, 'a duration such as 10m', (value) =>
      typeof value === 'string' ? parseDuration(value) : undefined,
    );
  }

  /** Milliseconds since 1970. */
  time(key: string): number | undefined {
    return this.read(key, 'a time in RFC 3339', (value) => {
      const time = typeof value === 'string' ? Date.parse(value) : Number.NaN;
      return Number.isNaN(time) ? undefined : time;
    });
  }

  selector(key: string): Selector | undefined {
    const value = this.raw(key);
    return value === undefined ? undefined : readSelector(value, this.pathOf(key), this.#problems);
  }

  /** @returns `undefined`: it is absent, or wrong */
  architecture(key: string): string | undefined {
    const value = this.raw(key);
    return value !== undefined && this.isArchitecture(value, key) ? value : undefined;
  }

  isArchitecture(value: unknown, key: string): value is string {
    const problem = typeof value === 'string' ? checkArchitecture(value) : 'must be an architecture';
    if (problem !== undefined) this.#problems.push(`${this.pathOf(key)}: ${problem}`);
    return problem === undefined;
  }
}

export function isIntegerWithin(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most;
}
