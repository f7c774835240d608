/** A subcommand's own flags: each defines its typed value, help text, completion and reference entry. */
import { isObjectName, type ServiceAccountName } from '../../src/credentials/credential.ts';
import { unknownArchitecture } from '../../src/names/architecture.ts';
import { parseDuration } from '../../src/names/duration.ts';
import { didYouMean } from '../../src/names/suggestion.ts';
import { byName } from '../../src/names/values.ts';
import { UsageError } from './exit.ts';

export interface Flag<T> {
  /** For `--help` and the reference page. */
  readonly help: string;
  readonly short?: string;
  /** Stands behind the flag in help, such as `FILE`. A switch has none. */
  readonly placeholder?: string;
  readonly values?: readonly string[];
  /**
   * @param given the values in their order; none if the flag is absent, an empty one for a switch
   * @param name with its dashes, for messages
   * @throws UsageError
   */
  readonly read: (given: readonly string[], name: string) => T;
}

/** Names are in camel case: `dryRun` is `--dry-run`. */
export type Flags = Readonly<Record<string, Flag<unknown>>>;

export type FlagValues<F extends Flags> = {
  readonly [Name in keyof F]: F[Name] extends Flag<infer T> ? T : never;
};

interface Options {
  readonly short?: string;
}

export function toggle(help: string, options: Options = {}): Flag<boolean> {
  return { ...options, help, read: (given) => given.length > 0 };
}

/** One of several words. The first one is the default. */
export function choice<const Word extends string>(
  words: readonly [Word, ...Word[]],
  help: string,
  options: Options = {},
): Flag<Word> {
  const { read, ...flag } = optionalChoice(words, `${help} Default: ${words[0]}.`, options);
  return { ...flag, placeholder: words.join('|'), read: (given, name) => read(given, name) ?? words[0] };
}

export function optionalChoice<const Word extends string>(
  words: readonly Word[],
  help: string,
  options: Options = {},
): Flag<Word | undefined> {
  return {
    ...options,
    help,
    placeholder: 'NAME',
    values: words,
    read: (given, name) => {
      const last = given.at(-1);
      const word = words.find((each) => each === last);
      if (last === undefined || word !== undefined) return word;
      throw new UsageError(`${name} must be ${words.join(' or ')}, not ${last}${didYouMean(last, words)}`);
    },
  };
}

/** A value; the last one counts. */
export function text(
  placeholder: string,
  help: string,
  options: Options & { readonly default: string },
): Flag<string>;
export function text(placeholder: string, help: string, options?: Options): Flag<string | undefined>;
export function text(
  placeholder: string,
  help: string,
  { short, default: preset }: Options & { readonly default?: string } = {},
): Flag<string | undefined> {
  return {
    ...(short !== undefined && { short }),
    help: preset === undefined ? help : `${help} Default: ${preset}.`,
    placeholder,
    read: (given) => given.at(-1) ?? preset,
  };
}

/** Values in their order. */
export function list(placeholder: string, help: string, options: Options = {}): Flag<readonly string[]> {
  return { ...options, help, placeholder, read: (given) => given };
}

export function duration(help: string, preset: string): Flag<number> {
  const { read, ...flag } = text('DURATION', help, { default: preset });
  return {
    ...flag,
    read: (given, name) => {
      const ms = parseDuration(read(given, name));
      if (ms === undefined)
        throw new UsageError(`${name} must be a duration such as ${preset}, not ${given.at(-1)}`);
      return ms;
    },
  };
}

export function architecture(help: string, preset: string, options: Options = {}): Flag<string> {
  const { read, ...flag } = text('NAME', help, { ...options, default: preset });
  return { ...flag, read: (given, name) => knownArchitecture(read(given, name), name) };
}

/** Repeated, or separated by commas. @returns in order of their names, each once */
export function architectures(help: string, preset: string, options: Options = {}): Flag<readonly string[]> {
  return {
    ...options,
    help: `${help} Default: ${preset}.`,
    placeholder: 'ARCHITECTURE,…',
    read: (given, name) => {
      const names = (given.length === 0 ? [preset] : given).flatMap((each) => each.split(','));
      return [...new Set(names.map((each) => knownArchitecture(each.trim(), name)))].sort(byName);
    },
  };
}

function knownArchitecture(architecture: string, name: string): string {
  const mistake = unknownArchitecture(architecture);
  if (mistake !== undefined) throw new UsageError(`${name}: ${mistake}`);
  return architecture;
}

/** An object that is named like a service account, which no cluster can have by another name. */
export function objectName(help: string): Flag<ServiceAccountName | undefined> {
  const { read, ...flag } = text('NAMESPACE/NAME', help);
  return {
    ...flag,
    read: (given, flagName) => {
      const value = read(given, flagName);
      if (value === undefined) return undefined;
      const [namespace = '', name = '', ...more] = value.split('/');
      const object = { namespace, name };
      if (more.length === 0 && isObjectName(object)) return object;
      throw new UsageError(`${flagName} must be NAMESPACE/NAME, not ${value}`);
    },
  };
}
