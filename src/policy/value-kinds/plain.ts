/** Plain kinds of values, and lists and tables of them. */
import { formatBytes, parseBytes, formatDuration, parseDuration } from '../../names/quantity.ts';
import { didYouMean, similarTo } from '../../names/suggestion.ts';
import type { JsonSchema, Kind, Report, TextRule } from '../settings/setting.ts';

/** The problem of a text, if any. */
export type Check = (text: string) => string | undefined;

/** One pattern and its message, in which `{}` is the text. */
export function matching(pattern: string, says: string): TextRule {
  return { match: [{ pattern, says }] };
}

/** The pattern of texts with at most so many runs of stars. */
export function atMostStars(count: number): string {
  const run = String.raw`(?:\*+[^*]+)`;
  return String.raw`^[^*]*(?:${run}{0,${count}}|${run}{0,${count - 1}}\*+)$`;
}

/** The problem of a text by a rule, if any. */
export function brokenBy({ match, instead, similar }: TextRule, given: string): string | undefined {
  const missed = match.find(({ pattern }) => !new RegExp(pattern).test(given));
  const names = instead?.names ?? {};
  const lower = given.toLowerCase();
  const right = Object.hasOwn(names, lower) ? names[lower] : undefined;
  let says = missed?.says;
  if (right !== undefined && right !== given) says ??= `${instead?.says}${right}`;
  if (says === undefined && similar && !similar.names.includes(given)) {
    const meant = similarTo(given, similar.names);
    if (meant !== undefined) says = `${similar.says}; did you mean ${meant}?`;
  }
  return says?.replaceAll('{}', () => shown(given));
}

/** The text of a variable or flag is the value, and the value is written as it is. */
const asIs = { fromText: (given: string) => given, write: <T>(value: T): T => value };

/** @param rule a function for settings that are no values of the chart */
export function text(name: string, rule?: TextRule | Check): Kind<string> {
  const check: Check = typeof rule === 'function' ? rule : (given) => rule && brokenBy(rule, given);
  return {
    name,
    placeholder: name.toUpperCase(),
    schema: { type: 'string', minLength: 1 },
    ...(typeof rule === 'object' && { rule }),
    ...asIs,
    read: (value, report) => {
      if (typeof value !== 'string')
        return refuse(report, `must be a string in quotes, not ${typeName(value)}`);
      if (value === '') return refuse(report, 'must not be empty');
      const wrong = value.includes('\0') ? 'must not contain a NUL character' : check(value);
      return wrong === undefined ? value : refuse(report, wrong);
    },
  };
}

const dnsLabel = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?';

/** Namespaces by name, in which `*` matches any characters. */
export const namespaceGlob = text('namespace', {
  match: ['^[-a-z0-9*]{1,63}$', atMostStars(4)].map((pattern) => ({
    pattern,
    says: 'must be the name of a namespace such as kube-* with at most 4 stars, not {}',
  })),
});

/** The name of an object: a DNS subdomain (Kubernetes, "Object Names and IDs"). */
export const objectName = text('name', {
  match: ['^[-a-z0-9.]{1,253}$', `^${dnsLabel}(?:\\.${dnsLabel})*$`].map((pattern) => ({
    pattern,
    says: 'must be the name of a Kubernetes object such as archwright-ca, not {}',
  })),
});

export function choice<const T extends string>(values: readonly T[]): Kind<T> {
  const allowed = values.map((value) => `\`${value}\``).join(', ');
  return {
    name: allowed,
    placeholder: values.join('|'),
    schema: { enum: values },
    ...asIs,
    read: (value, report) => {
      const found = values.find((known) => known === value);
      if (found !== undefined) return found;
      const hint = typeof value === 'string' ? didYouMean(value, values) : '';
      return refuse(report, `must be one of ${values.join(', ')}, not ${shown(value)}${hint}`);
    },
  };
}

/** Switches something on or off. Its flags: `--name` and `--no-name`. */
export const flag: Kind<boolean> = {
  name: 'boolean',
  placeholder: '',
  schema: { type: 'boolean' },
  isSwitch: true,
  fromText: (given, report) => {
    if (given === 'true') return true;
    return given === 'false' ? false : refuse(report, `must be true or false, not ${shown(given)}`);
  },
  read: (value, report) =>
    typeof value === 'boolean' ? value : refuse(report, `must be true or false, not ${shown(value)}`),
  write: (value) => value,
};

export function integer(min: number, max: number): Kind<number> {
  return {
    name: `number, ${min} to ${max}`,
    placeholder: 'NUMBER',
    schema: { type: 'integer', minimum: min, maximum: max },
    fromText: (given, report) =>
      /^-?\d{1,15}$/.test(given)
        ? Number(given)
        : refuse(report, `must be a whole number, not ${shown(given)}`),
    read: (value, report) =>
      typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
        ? value
        : refuse(report, `must be a whole number from ${min} to ${max}, not ${shown(value)}`),
    write: (value) => value,
  };
}

/** A whole number, or a word in its place. */
export function integerOr<const T extends string>(word: T, min: number, max: number): Kind<number | T> {
  const number = integer(min, max);
  return {
    name: `\`${word}\` or ${number.name}`,
    placeholder: `${word}|NUMBER`,
    schema: { type: ['integer', 'string'], minimum: min, maximum: max, pattern: `^${word}$` },
    fromText: (given, report) => (given === word ? word : number.fromText(given, report)),
    read: (value, report) =>
      value === word ? word : number.read(value, (message) => report(`must be ${word}, or ${message}`)),
    write: (value) => value,
  };
}

/** Units largest first, as in `parseDuration`. */
const durationPattern = String.raw`^(\d{1,12}d)?(\d{1,12}h)?(\d{1,12}m)?(\d{1,12}s)?(\d{1,12}ms)?$`;

/** Node's timers have 32-bit milliseconds. A longer one would fire at once. */
export const maxTimerMs = 2_147_483_647;

export function duration(minMs: number, maxMs: number): Kind<number> {
  return amount('duration', minMs, maxMs, { type: 'string', minLength: 1, pattern: durationPattern });
}

export function size(min: number, max: number): Kind<number> {
  const pattern = String.raw`^\d{1,15}(Gi|Mi|Ki)?$`;
  return amount('size', min, max, { type: ['string', 'integer'], pattern, minimum: min, maximum: max });
}

const units = {
  duration: { parse: parseDuration, format: formatDuration, example: '7d, 1h30m or 500ms' },
  size: { parse: parseBytes, format: formatBytes, example: '64Mi' },
};

/** A text with a unit, within limits. */
function amount(unit: keyof typeof units, min: number, max: number, schema: JsonSchema): Kind<number> {
  const { parse, format, example } = units[unit];
  const says = `must be from ${format(min)} to ${format(max)}, not {}`;
  return {
    name: unit,
    placeholder: unit.toUpperCase(),
    schema,
    rule: { unit, min, max, says },
    ...asIs,
    read: (value, report) => {
      const isText = typeof value === 'string' || typeof value === 'number';
      const found = isText ? parse(`${value}`) : undefined;
      if (found === undefined)
        return refuse(report, `must be a ${unit} such as ${example}, not ${shown(value)}`);
      return found >= min && found <= max ? found : refuse(report, says.replace('{}', shown(value)));
    },
    write: format,
  };
}

/** A list of one kind; in a variable or flag separated by commas. An element twice is a mistake. */
export function listOf<T>(element: Kind<T>): Kind<readonly T[]> {
  return {
    name: `list of ${element.name}`,
    placeholder: `${element.placeholder},…`,
    schema: { type: 'array', items: element.schema, uniqueItems: true },
    rule: element.rule && { items: element.rule },
    isList: true,
    fromText: (given, report) =>
      given.trim() === '' ? [] : given.split(',').map((item) => element.fromText(item.trim(), report)),
    read: (value, report) => {
      if (!Array.isArray(value)) return refuse(report, `must be a list in brackets, not ${typeName(value)}`);
      const items = readEach(element, value, report);
      const seen = new Set<string>();
      for (const [index, item] of items.entries()) {
        const identity = JSON.stringify(item === undefined ? index : element.write(item));
        if (seen.has(identity)) return refuse(report, `${shown(value[index])} is in the list twice`, [index]);
        seen.add(identity);
      }
      return complete(items);
    },
    write: (value) => value.map((item) => element.write(item)),
  };
}

/** A table from names to one kind; in a variable or flag `name=value,name=value`. */
export function tableOf<T>(keys: TextRule, element: Kind<T>): Kind<Readonly<Record<string, T>>> {
  return {
    name: `table of ${element.name}`,
    placeholder: `NAME=${element.placeholder},…`,
    schema: { type: 'object', additionalProperties: element.schema },
    rule: { keys, ...(element.rule && { values: element.rule }) },
    isList: true,
    fromText: (given, report) => {
      if (given.trim() === '') return {};
      const entries = given.split(',').map((pair): [string, unknown] | undefined => {
        const equals = pair.indexOf('=');
        if (equals < 1)
          return refuse(report, `must be name=value pairs separated by commas, not ${shown(given)}`);
        return [pair.slice(0, equals).trim(), element.fromText(pair.slice(equals + 1).trim(), report)];
      });
      const found = complete(entries);
      if (found && new Set(found.map(([name]) => name)).size < found.length) {
        return refuse(report, `names something twice: ${shown(given)}`);
      }
      return found && Object.fromEntries(found);
    },
    read: (value, report) => {
      if (!isTable(value)) return refuse(report, `must be a table, not ${typeName(value)}`);
      const entries = Object.entries(value).map(([name, item]): [string, T] | undefined => {
        const wrong = brokenBy(keys, name);
        if (wrong !== undefined) return refuse(report, wrong, [name]);
        const read = element.read(item, within(report, name));
        return read === undefined ? undefined : [name, read];
      });
      const found = complete(entries);
      return found && Object.fromEntries(found);
    },
    write: (value) =>
      Object.fromEntries(Object.entries(value).map(([name, item]) => [name, element.write(item)])),
  };
}

/** Reports a problem. @returns `undefined`, for the caller to return */
export function refuse(report: Report, message: string, path?: readonly (string | number)[]): undefined {
  report(message, path);
  return undefined;
}

/** The report about a part of a value. */
export function within(report: Report, step: string | number): Report {
  return (message, path = []) => report(message, [step, ...path]);
}

export function readEach<T>(
  element: Kind<T>,
  list: readonly unknown[],
  report: Report,
): readonly (T | undefined)[] {
  return list.map((item, index) => element.read(item, within(report, index)));
}

export function complete<T>(items: readonly (T | undefined)[]): T[] | undefined {
  const found = items.filter((item) => item !== undefined);
  return found.length === items.length ? found : undefined;
}

/** Whether a value of the TOML parser is a table; dates are objects too. */
export function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

const maxShown = 80;

export function shown(value: unknown): string {
  if (typeof value === 'object') return typeName(value);
  const quoted = JSON.stringify(value) ?? typeName(value);
  return quoted.length > maxShown ? `${quoted.slice(0, maxShown)}…` : quoted;
}

function typeName(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Date) return 'a date';
  return typeNames[typeof value] ?? 'nothing';
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  boolean: 'a boolean',
  object: 'a table',
};
