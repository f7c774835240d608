/**
 * Settings. Each one is described once, in this folder. The TOML key, the `ARCHWRIGHT_*` variable, the flag,
 * the types of the program and the reference pages are made from the description.
 *
 * No schema library: it only reads TOML. A value is also read from a variable or flag, written back, and
 * explained. And it would cost each agent 19 MiB of memory (measured with zod 4 on Node 24).
 */

/** What the TOML parser gives, apart from dates, which no setting has. */
export type TomlValue =
  string | number | boolean | readonly TomlValue[] | { readonly [key: string]: TomlValue };

export type JsonSchema = { readonly [keyword: string]: TomlValue };

/** Steps from a setting to the place inside its value that a message is about. */
export type Path = readonly (string | number)[];

export type Report = (message: string, path?: Path) => void;

/**
 * What values must be beyond `schema`, in a form that the chart's schema says too
 * (scripts/docs/chart/rules.ts). Patterns are of both RE2 and JavaScript. In messages `{}` is the
 * value.
 */
export type Rule =
  | TextRule
  | RangeRule
  /** The kind of each item of a list, or of a single value in place of a list. */
  | { readonly items: Rule }
  | { readonly keys?: Rule; readonly values?: Rule }
  | { readonly fields: Readonly<Record<string, Rule>> };

export interface TextRule {
  /** The first pattern that a text does not match says what is wrong. */
  readonly match: readonly { readonly pattern: string; readonly says: string }[];
  /** Other names, in lower case, of a right one, and each right name itself. */
  readonly instead?: { readonly names: Readonly<Record<string, string>>; readonly says: string };
  /** Known names, in code unit order. One that is similar to a known one is a mistake, any other is right. */
  readonly similar?: { readonly names: readonly string[]; readonly says: string };
}

/** Durations in milliseconds, sizes in bytes. */
interface RangeRule {
  readonly unit: 'duration' | 'size';
  readonly min: number;
  readonly max: number;
  readonly says: string;
}

export interface Kind<T> {
  readonly name: string;
  /** What `--help` shows behind the flag, such as `DURATION`. */
  readonly placeholder: string;
  /** JSON schema (draft-07) of values in files. `read` refuses more only by `rule`, and NUL characters. */
  readonly schema: JsonSchema;
  readonly rule?: Rule | undefined;
  /** A flag of this kind has no value. */
  readonly isSwitch?: boolean;
  /** The flag may be given several times. */
  readonly isList?: boolean;
  /** The TOML value of the text of a variable or flag; `undefined` after a report. */
  fromText(text: string, report: Report): unknown;
  /** Checks a value of the TOML parser; `undefined` after at least one report. */
  read(value: unknown, report: Report): T | undefined;
  /** The TOML value, for `config print` and the reference page. */
  write(value: T): TomlValue;
}

export const parts = [
  'webhook',
  'agent',
  'controller',
  'inspect',
  'explain',
  'clean',
  'probe',
  'status',
] as const;
export type Part = (typeof parts)[number];

export interface Setting<T> {
  readonly kind: Kind<NonNullable<T>>;
  /** `undefined`: not set, and the help says what that means. */
  readonly default: T;
  /** One sentence for the reference page and `--help`. */
  readonly help: string;
  readonly parts: readonly Part[];
  /** A change takes effect when the program starts again. */
  readonly restart: boolean;
  /** A shorter flag that means the same. */
  readonly shortFlag?: string;
}

interface Description {
  readonly help: string;
  readonly shortFlag?: string;
}

/** Describes a setting: with a default, or without one if it may be left unset. */
interface Describe {
  <T>(kind: Kind<T>, description: Description & { readonly default: NoInfer<T> }): Setting<T>;
  <T>(kind: Kind<T>, description: Description): Setting<T | undefined>;
}

/** Settings of these parts. A change takes effect at once (`live`), or at the next start (`atStart`). */
export function settingsOf(...parts: readonly Part[]): Record<'live' | 'atStart', Describe> {
  const describe =
    (restart: boolean): Describe =>
    (kind: Kind<unknown>, description: Description) => {
      return { default: undefined, ...description, kind, parts, restart };
    };
  return { live: describe(false), atStart: describe(true) };
}

/** The TOML value of a setting; `undefined` if it is not set. */
export function written(setting: Setting<unknown>, value: unknown): TomlValue | undefined {
  return value === undefined || value === null ? undefined : setting.kind.write(value);
}

/** Any table of settings by TOML key; a dot in a key is a table in the file. */
export type Settings = Readonly<Record<string, Setting<unknown>>>;

/** `kubeletConfig.binDir` → `ARCHWRIGHT_KUBELET_CONFIG_BIN_DIR`. */
export function variableName(key: string): string {
  return `ARCHWRIGHT_${words(key).join('_').toUpperCase()}`;
}

/** `kubeletConfig.binDir` → `kubelet-config-bin-dir`, without the two dashes. */
export function flagName(key: string): string {
  return words(key).join('-');
}

function words(key: string): string[] {
  return key
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[ .]/);
}
