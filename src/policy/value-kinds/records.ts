/**
 * Tables with fixed fields, written in a variable or flag as an inline TOML value: `{ key = "arch", effect =
 * "NoSchedule" }`.
 */
import { complete, isTable, listOf, readEach, refuse, shown, tableOf, within } from './plain.ts';
import { didYouMean } from '../../names/suggestion.ts';
import type { JsonSchema, Kind, Report, Rule, TextRule, TomlValue } from '../settings/setting.ts';
import { parseToml, TomlError } from '../configuration/toml.ts';

type Fields = Readonly<Record<string, Kind<unknown>>>;
type Values<F extends Fields> = { readonly [K in keyof F]?: F[K] extends Kind<infer T> ? T : never };

const placeholder = 'TOML';

export interface RecordDescription<F extends Fields, T> {
  readonly name: string;
  readonly fields: F;
  /** What `make` refuses, as keywords of JSON schema. */
  readonly schema?: JsonSchema;
  /** Checks the fields together and makes the value, or reports why it cannot and gives undefined. */
  make(values: Values<F>, report: Report): T | undefined;
}

/** A table with the named fields, each of its kind; an unknown field is a problem. */
export function record<F extends Fields, T>(description: RecordDescription<F, T>): Kind<T> {
  const { name, fields, schema = {} } = description;
  const rules = Object.entries(fields).flatMap(([key, { rule }]): [string, Rule][] =>
    rule ? [[key, rule]] : [],
  );
  return {
    name,
    placeholder,
    schema: {
      type: 'object',
      properties: Object.fromEntries(Object.entries(fields).map(([key, { schema }]) => [key, schema])),
      additionalProperties: false,
      ...schema,
    },
    rule: { fields: Object.fromEntries(rules) },
    fromText: inlineToml,
    read: (value, report) => {
      if (!isTable(value))
        return refuse(report, `must be a table with ${Object.keys(fields).join(', ')}, not ${shown(value)}`);
      const values: Record<string, unknown> = {};
      let sound = true;
      for (const [key, written] of Object.entries(value)) {
        const kind = Object.hasOwn(fields, key) ? fields[key] : undefined;
        const read = kind
          ? kind.read(written, within(report, key))
          : refuse(report, `is not a known key${didYouMean(key, Object.keys(fields))}`, [key]);
        if (read === undefined) sound = false;
        else values[key] = read;
      }
      return sound ? description.make(values as Values<F>, report) : undefined;
    },
    write: (value) => value as TomlValue,
  };
}

/** One table or an array of tables, as `[name]` and `[[name]]` write them. */
export function oneOrMore<T>(element: Kind<T>): Kind<readonly T[]> {
  return {
    ...listOf(element),
    isList: false,
    placeholder,
    schema: { anyOf: [element.schema, { type: 'array', items: element.schema }] },
    fromText: inlineToml,
    read: (value, report) =>
      complete(Array.isArray(value) ? readEach(element, value, report) : [element.read(value, report)]),
  };
}

/** A table from names to records. */
export function recordsByName<T>(keys: TextRule, element: Kind<T>): Kind<Readonly<Record<string, T>>> {
  return { ...tableOf(keys, element), isList: false, placeholder, fromText: inlineToml };
}

function inlineToml(text: string, report: Report): unknown {
  try {
    const { value } = parseToml(`value = ${text}`);
    if (Object.keys(value).length > 1) return refuse(report, 'must be one inline TOML value');
    return value['value'];
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    return refuse(report, `must be an inline TOML value such as { key = "value" }: ${error.message}`);
  }
}
