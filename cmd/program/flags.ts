/** Parses and describes flags: settings, the subcommand's own flags, `--config` and `--help`. */
import { parseArgs } from 'node:util';
import { formatToml } from '../../src/policy/configuration/toml.ts';
import { hintAboutUnknown } from '../../src/policy/settings/removed.ts';
import { flagName, written, type Setting, type Settings } from '../../src/policy/settings/setting.ts';
import { settings } from '../../src/policy/settings/all.ts';
import { UsageError } from './exit.ts';
import { text, toggle, wordsOf, type Flag } from './flag.ts';
import type { Subcommand } from './subcommand.ts';

const common = {
  config: text('FILE', 'The configuration, in TOML.'),
  help: toggle('Prints this text.', { short: 'h' }),
};

/** Settings that are flags, by TOML key. A subcommand's own flag of that name comes before the setting. */
export function settingsOf({ settings: part, flags }: Pick<Subcommand, 'settings' | 'flags'>): Settings {
  if (part === 'none') return {};
  return Object.fromEntries(
    Object.entries(settings as Settings).filter(
      ([key, { parts }]) => (part === 'all' || parts.includes(part)) && !Object.hasOwn(flags, key),
    ),
  );
}

/** A flag, as it is parsed, and for people: in help, completion and the reference page. */
export interface DescribedFlag {
  /** Key of the setting, or of the own flag. */
  readonly key: string;
  readonly words: readonly string[];
  /** All of them with the placeholder of the value: `-o, --output table|json`. */
  readonly title: string;
  readonly help: string;
  readonly values: readonly string[];
  readonly isSwitch: boolean;
  readonly setting?: Setting<unknown>;
}

/** @param which the subcommand's own flags alone, or those of every subcommand too */
export function describeFlags(
  subcommand: Subcommand,
  which: 'own' | 'all' = 'all',
): readonly DescribedFlag[] {
  const shared: Partial<typeof common> = subcommand.settings === 'none' ? { help: common.help } : common;
  const all = { ...subcommand.flags, ...(which === 'all' && shared) };
  return Object.entries(all).map(([key, { short, placeholder, help, values = [] }]) => {
    const words = [...(short === undefined ? [] : [`-${short}`]), `--${flagName(key)}`];
    return { key, words, help, values, ...shapeOf(words, placeholder) };
  });
}

export function describeSettings(subcommand: Subcommand): readonly DescribedFlag[] {
  return Object.entries(settingsOf(subcommand)).map(([key, setting]) => {
    const { kind, help, shortFlag } = setting;
    const { isSwitch = false, placeholder } = kind;
    const name = flagName(key);
    const others = isSwitch ? [`--no-${name}`] : shortFlag === undefined ? [] : [`--${shortFlag}`];
    const words = [`--${name}`, ...others];
    const shape = shapeOf(words, isSwitch ? undefined : placeholder);
    return { key, words, help: `${help}${defaultOf(setting)}`, values: wordsOf(kind), setting, ...shape };
  });
}

/** @param placeholder of the value; a switch has none */
function shapeOf(words: readonly string[], placeholder: string | undefined) {
  const title = [words.join(', '), ...(placeholder === undefined ? [] : [placeholder])].join(' ');
  return { title, isSwitch: placeholder === undefined };
}

function defaultOf(setting: Setting<unknown>): string {
  const preset = written(setting, setting.default);
  const isEmpty = preset === undefined || (typeof preset === 'object' && Object.keys(preset).length === 0);
  return isEmpty ? '' : ` Default: ${formatToml(preset)}.`;
}

/** @returns `settings`: texts by TOML key @throws UsageError for an unknown flag or a wrong value */
export function parseFlags(subcommand: Subcommand, args: readonly string[]) {
  const known = flagsOf(subcommand);
  const options = [...known].map(([name, { isSwitch, words }]) => {
    const type: 'boolean' | 'string' = isSwitch ? 'boolean' : 'string';
    const [, short] = /^-(\w)$/.exec(words[0] ?? '') ?? [];
    return [name, { type, ...(short !== undefined && { short }) }] as const;
  });
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(options),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const texts = new Map<string, string[]>();
  const given: Record<string, string> = {};
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const flag = known.get(token.name);
    if (!flag) {
      const names = [...known.keys()].map((name) => `--${name}`);
      const hint = hintAboutUnknown(token.rawName, names, (key) => `--${flagName(key)}`);
      throw new UsageError(`unknown flag ${token.rawName}${hint}`);
    }
    const value = valueOf(token, flag.isSwitch);
    const { key, setting } = flag;
    if (setting) {
      const before = given[key];
      if (flag.isSwitch) given[key] = String(token.name === flagName(key));
      // Repeated flags add to a list. For other kinds the last one counts.
      else given[key] = setting.kind.isList && before !== undefined ? `${before},${value}` : value;
    } else texts.set(key, [...(texts.get(key) ?? []), value]);
  }
  const read = <T>(key: string, flag: Flag<T>): T => flag.read(texts.get(key) ?? [], `--${flagName(key)}`);
  const help = read('help', common.help);
  const { flags } = subcommand;
  return {
    help,
    positionals: tokens.flatMap((token) => (token.kind === 'positional' ? [token.value] : [])),
    // Other mistakes do not count if the person asks for help.
    own: help ? {} : Object.fromEntries(Object.entries(flags).map(([key, flag]) => [key, read(key, flag)])),
    given: new Set([...texts.keys()].filter((key) => Object.hasOwn(flags, key))),
    settings: given,
    config: read('config', common.config),
  };
}

function flagsOf(subcommand: Subcommand): ReadonlyMap<string, DescribedFlag> {
  const all = [...describeSettings(subcommand), ...describeFlags(subcommand)];
  const long = (flag: DescribedFlag) => flag.words.filter((word) => word.startsWith('--'));
  return new Map(all.flatMap((flag) => long(flag).map((word) => [word.slice(2), flag] as const)));
}

interface OptionToken {
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
}

function valueOf({ rawName, value, inlineValue }: OptionToken, isSwitch: boolean): string {
  if (isSwitch && value !== undefined) throw new UsageError(`${rawName} is a switch and takes no value`);
  if (isSwitch) return '';
  if (value === undefined) throw new UsageError(`${rawName} needs a value`);
  // The value is missing in `--listen --tls-dir x`. `-` alone is standard input.
  if (!inlineValue && value.startsWith('-') && value !== '-') {
    throw new UsageError(`${rawName} needs a value; if it is ${value}, write ${rawName}=${value}`);
  }
  return value;
}
