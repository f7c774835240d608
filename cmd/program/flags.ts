/** Parses flags: settings, the subcommand's own flags, `--config` and `--help`. */
import { parseArgs } from 'node:util';
import { hintAboutUnknown } from '../../src/policy/settings/removed.ts';
import { flagName, type Setting, type Settings } from '../../src/policy/settings/setting.ts';
import { settings } from '../../src/policy/settings/all.ts';
import { UsageError, type Subcommand } from './subcommand.ts';

/**
 * The settings that a subcommand takes as flags, by TOML key. If the subcommand has its own flag of that
 * name, the setting comes from the file and the environment only.
 */
export function settingsOf({
  settings: part,
  flags = {},
}: Pick<Subcommand, 'settings'> & Partial<Pick<Subcommand, 'flags'>>): Settings {
  if (part === 'none') return {};
  return Object.fromEntries(
    Object.entries(settings as Settings).filter(
      ([key, { parts }]) => (part === 'all' || parts.includes(part)) && !Object.hasOwn(flags, flagName(key)),
    ),
  );
}

interface Flag {
  readonly isSwitch: boolean;
  readonly short?: string;
  /** TOML key and setting, if it is one. */
  readonly setting?: readonly [key: string, setting: Setting<unknown>];
}

/**
 * Parses the arguments after a subcommand's name.
 * @returns `settings`: texts by TOML key, as the configuration takes them
 * @throws UsageError for an unknown flag, a missing value or an unexpected value
 */
export function parseFlags(subcommand: Subcommand, args: readonly string[]) {
  const flags = flagsOf(subcommand);
  const options = [...flags].map(([name, { isSwitch, short }]) => {
    const type: 'boolean' | 'string' = isSwitch ? 'boolean' : 'string';
    return [name, { type, ...(short !== undefined && { short }) }] as const;
  });
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(options),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const own = new Map<string, string[]>();
  const given: Record<string, string> = {};
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const positive = token.name.startsWith('no-') ? flags.get(token.name.slice(3)) : undefined;
    const isNegated = positive?.isSwitch === true && positive.setting !== undefined;
    const flag = isNegated ? positive : flags.get(token.name);
    if (!flag) {
      const known = [...flags.keys()].map((name) => `--${name}`);
      const hint = hintAboutUnknown(token.rawName, known, (key) => `--${flagName(key)}`);
      throw new UsageError(`unknown flag ${token.rawName}${hint}`);
    }
    const value = valueOf(token, flag.isSwitch);
    if (flag.setting) {
      const [key, { kind }] = flag.setting;
      const before = given[key];
      if (flag.isSwitch) given[key] = String(!isNegated);
      // Repeated flags add to a list. For other kinds the last one counts.
      else given[key] = kind.isList && before !== undefined ? `${before},${value}` : value;
    } else own.set(token.name, [...(own.get(token.name) ?? []), value]);
  }
  const config = own.get('config')?.at(-1);
  const help = own.has('help');
  for (const name of ['config', 'help']) own.delete(name);
  const positionals = tokens.flatMap((token) => (token.kind === 'positional' ? [token.value] : []));
  return { help, positionals, own, settings: given, config };
}

function flagsOf(subcommand: Subcommand): ReadonlyMap<string, Flag> {
  const flags = new Map<string, Flag>();
  for (const [key, setting] of Object.entries(settingsOf(subcommand))) {
    const flag: Flag = { isSwitch: setting.kind.isSwitch === true, setting: [key, setting] };
    flags.set(flagName(key), flag);
    if (setting.shortFlag !== undefined) flags.set(setting.shortFlag, flag);
  }
  if (subcommand.settings !== 'none') flags.set('config', { isSwitch: false });
  for (const [name, { value, short }] of Object.entries(subcommand.flags)) {
    flags.set(name, { isSwitch: value === undefined, ...(short !== undefined && { short }) });
  }
  return flags.set('help', { isSwitch: true, short: 'h' });
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
  // In `--listen --tls-dir x` the value is missing. `-` alone is standard input.
  if (!inlineValue && value.startsWith('-') && value !== '-') {
    throw new UsageError(`${rawName} needs a value; if it is ${value}, write ${rawName}=${value}`);
  }
  return value;
}
