/**
 * One value of the Helm chart, for `values.yaml`, `values.schema.json` and the table in the chart's README.
 * Values that are settings of the program come from the settings (`settings.ts`), the others from `values/`.
 */
import type { JsonSchema, TomlValue } from '../../../src/policy/settings/setting.ts';

export interface Value {
  /** Path in `values.yaml`, with dots. */
  readonly key: string;
  /** One or two sentences. */
  readonly help: string;
  readonly schema: JsonSchema;
  /** Absent: not set. */
  readonly default?: TomlValue;
  /** Another valid value: shown without a default, and used by the test that each value has an effect. */
  readonly example: TomlValue;
}

export interface Section {
  readonly title: string;
  readonly values: readonly Value[];
}

/** Makes the values of one section; keys get the prefix. */
export function valuesOf(prefix: string, described: Readonly<Record<string, Omit<Value, 'key'>>>): Value[] {
  return Object.entries(described).map(([key, value]) => ({
    key: prefix === '' ? key : `${prefix}.${key}`,
    ...value,
  }));
}

export type Described = Readonly<Record<string, Omit<Value, 'key'>>>;

type Kind = (help: string, byDefault: TomlValue | undefined, example: TomlValue) => Omit<Value, 'key'>;

/** Makes values with a schema, from their purpose, default, and another valid value. */
function kind(schema: JsonSchema): Kind {
  return (help, byDefault, example) => ({
    help,
    ...(byDefault !== undefined && { default: byDefault }),
    example,
    schema,
  });
}

export const text = kind({ type: 'string' });
const flag = kind({ type: 'boolean' });
/** A switch that is on by default. */
export const on = (help: string): Omit<Value, 'key'> => flag(help, true, false);
export const off = (help: string): Omit<Value, 'key'> => flag(help, false, true);
export const count = kind({ type: 'integer', minimum: 0 });
export const port = kind({ type: 'integer', minimum: 1, maximum: 65_535 });
export const seconds = kind({ type: 'integer', minimum: 1 });
export const countOrPercent = kind({ type: ['integer', 'string'], pattern: '^[0-9]+%?$' });
export const texts = kind({ type: 'array', items: { type: 'string' } });
/** Texts by name, such as labels. */
export const textMap = kind({ type: 'object', additionalProperties: { type: 'string' } });
/** An object of Kubernetes, checked by the API server. */
export const object = kind({ type: 'object' });
export const objects = kind({ type: 'array', items: { type: 'object' } });

export function oneOf(...values: readonly string[]): Kind {
  return kind({ enum: values });
}

export function shaped(schema: JsonSchema, value: Omit<Value, 'key' | 'schema'>): Omit<Value, 'key'> {
  return { ...value, schema };
}
