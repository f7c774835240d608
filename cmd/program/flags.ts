/** Parses flags: settings, the subcommand's own flags, `--config` and `--help`. */
import { parseArgs, type ParseArgsOptionsConfig } from 'node:util';
import { didYouMean } from '../../src/names/suggestion.ts';
import { flagName, type Setting, type Settings } from '../../src/policy/settings/setting.ts';
import { settings } from '../../src/policy/settings/all.ts';
import { UsageError, type Subcommand } from './subcommand.ts';

export interface ParsedFlags {
  readonly help: boolean;
  readonly positionals: readonly string[];
  /** The subcommand's own flags. */
  readonly own: ReadonlyMap<string, readonly string[]>;
  /** Path given by `--config`. */
  readonly config?: string;
  /** Texts by TOML key, as the configuration takes them. */
  readonly settings: Readonly<Record<string, string>>;
}

/**
 * The settings that a subcommand takes as flags, by TOML key. If the subcommand has its own flag of the same name, the
 * setting comes from the file and the environment only.
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

/** The meaning of a flag. */
type Target =
  | { readonly kind: 'setting'; readonly key: string; readonly setting: Setting<unknown> }
  | { readonly kind: 'own'; readonly name: string; readonly isSwitch: boolean }
  | { readonly kind: 'config' | 'help' };

/**
 * Parses the arguments after a subcommand's name.
 * @throws UsageError for an unknown flag, a missing value or an unexpected value
 */
export function parseFlags(name: string, subcommand: Subcommand, args: readonly string[]): ParsedFlags {
  const targets = targetsOf(subcommand);
  const { tokens } = parseArgs({
    args: [...args],
    options: optionsOf(subcommand, targets),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const positionals: string[] = [];
  const own = new Map<string, string[]>();
  const given: Record<string, string> = {};
  let config: string | undefined;
  let help = false;

  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const negated = token.name.startsWith('no-') && isNegatable(targets.get(token.name.slice(3)));
    const target = targets.get(negated ? token.name.slice(3) : token.name);
    if (!target) {
      const known = [...targets.keys()].map((flag) => `--${flag}`);
      throw new UsageError(name, `unknown flag ${token.rawName}${didYouMean(token.rawName, known)}`);
    }
    const value = valueOf(name, token, isSwitch(target));
    switch (target.kind) {
      case 'help':
        help = true;
        break;
      case 'config':
        config = value;
        break;
      case 'own':
        own.set(target.name, [...(own.get(target.name) ?? []), value]);
        break;
      case 'setting':
        given[target.key] = settingText(target.setting, given[target.key], negated ? 'false' : value);
        break;
    }
  }
  return { help, positionals, own, settings: given, ...(config !== undefined && { config }) };
}

/** Repeated flags add to a list. For other kinds the last one counts. */
function settingText(setting: Setting<unknown>, before: string | undefined, value: string): string {
  if (setting.kind.isSwitch) return value === '' ? 'true' : value;
  return setting.kind.isList && before !== undefined ? `${before},${value}` : value;
}

function targetsOf(subcommand: Subcommand): ReadonlyMap<string, Target> {
  const targets = new Map<string, Target>();
  for (const [key, setting] of Object.entries(settingsOf(subcommand))) {
    targets.set(flagName(key), { kind: 'setting', key, setting });
    if (setting.shortFlag !== undefined) targets.set(setting.shortFlag, { kind: 'setting', key, setting });
  }
  if (subcommand.settings !== 'none') targets.set('config', { kind: 'config' });
  for (const [flag, { value }] of Object.entries(subcommand.flags)) {
    targets.set(flag, { kind: 'own', name: flag, isSwitch: value === undefined });
  }
  targets.set('help', { kind: 'help' });
  return targets;
}

function optionsOf(subcommand: Subcommand, targets: ReadonlyMap<string, Target>): ParseArgsOptionsConfig {
  const options: ParseArgsOptionsConfig = {};
  for (const [flag, target] of targets) options[flag] = { type: isSwitch(target) ? 'boolean' : 'string' };
  for (const [flag, { short }] of Object.entries(subcommand.flags)) {
    const option = options[flag];
    if (option && short !== undefined) option.short = short;
  }
  options['help'] = { type: 'boolean', short: 'h' };
  return options;
}

function isSwitch(target: Target): boolean {
  if (target.kind === 'setting') return target.setting.kind.isSwitch === true;
  return target.kind === 'help' || (target.kind === 'own' && target.isSwitch);
}

function isNegatable(target: Target | undefined): boolean {
  return target?.kind === 'setting' && isSwitch(target);
}

interface OptionToken {
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
}

function valueOf(name: string, token: OptionToken, isSwitch: boolean): string {
  const { rawName, value, inlineValue } = token;
  if (isSwitch) {
    if (value === undefined) return '';
    throw new UsageError(name, `${rawName} is a switch and takes no value`);
  }
  if (value === undefined) throw new UsageError(name, `${rawName} needs a value`);
  // In `--listen --tls-dir x` the value is missing. `-` alone is standard input.
  if (!inlineValue && value.startsWith('-') && value !== '-') {
    throw new UsageError(name, `${rawName} needs a value; if it is ${value}, write ${rawName}=${value}`);
  }
  return value;
}
