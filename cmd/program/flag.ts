/** A subcommand's own flags: each defines its typed value, help text, completion and reference entry. */
import { isObjectName, type ServiceAccountName } from '../../src/credentials/credential.ts';
import { unknownArchitecture } from '../../src/names/architecture.ts';
import { byName } from '../../src/names/values.ts';
import type { Kind } from '../../src/policy/settings/setting.ts';
import * as kinds from '../../src/policy/value-kinds/plain.ts';
import { UsageError } from './exit.ts';

export interface Flag<T> {
  /** The text in `--help` and on the reference page. */
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

type Options = Pick<Flag<unknown>, 'short'>;

export function toggle(help: string, options: Options = {}): Flag<boolean> {
  return { ...options, help, read: (given) => given.length > 0 };
}

/** Any text; the last one counts. */
export function text(placeholder: string, help: string, options: Options = {}): Flag<string | undefined> {
  return { ...options, help, placeholder, read: (given) => given.at(-1) };
}

/** Values in their order. */
export function list(placeholder: string, help: string, options: Options = {}): Flag<readonly string[]> {
  return { ...options, help, placeholder, read: (given) => given };
}

/** A value of a kind that settings have too; the last one counts. */
export function value<T>(kind: Kind<T>, help: string, options: Options = {}): Flag<T | undefined> {
  return {
    ...options,
    help,
    placeholder: kind.placeholder,
    values: wordsOf(kind),
    read: (given, name) => {
      const last = given.at(-1);
      const refuse = (message: string): never => {
        throw new UsageError(`${name} ${message}`);
      };
      return last === undefined ? undefined : kind.read(kind.fromText(last, refuse), refuse);
    },
  };
}

/** The words of a choice, for completion. */
export function wordsOf({ schema }: Kind<unknown>): readonly string[] {
  return Array.isArray(schema['enum']) ? schema['enum'].map(String) : [];
}

export function withDefault<T>(flag: Flag<T | undefined>, preset: T, shown = String(preset)): Flag<T> {
  const { help, read } = flag;
  return { ...flag, help: `${help} Default: ${shown}.`, read: (given, name) => read(given, name) ?? preset };
}

/** One of several words. The first one is the default. */
export function choice<const Word extends string>(
  words: readonly [Word, ...Word[]],
  help: string,
  options?: Options,
): Flag<Word> {
  return withDefault(value(kinds.choice(words), help, options), words[0]);
}

const architectureKind = kinds.text('architecture', (name) => {
  const mistake = unknownArchitecture(name);
  return mistake === undefined ? undefined : `must be an architecture: ${mistake}`;
});

export function architecture(help: string, preset: string, options?: Options): Flag<string> {
  return withDefault(value(architectureKind, help, options), preset);
}

/** Repeated, or separated by commas. @returns in order of their names, each once */
export function architectures(help: string, preset: string, options?: Options): Flag<readonly string[]> {
  const one = value(architectureKind, help, options);
  const many: Flag<readonly string[] | undefined> = {
    ...one,
    placeholder: 'ARCHITECTURE,…',
    read: (given, name) => {
      const names = given
        .flatMap((each) => each.split(','))
        .map((each) => one.read([each.trim()], name) ?? '');
      return names.length === 0 ? undefined : [...new Set(names)].sort(byName);
    },
  };
  return withDefault(many, [preset]);
}

/** An object that is named like a service account, which no cluster can have by another name. */
export function objectName(help: string): Flag<ServiceAccountName | undefined> {
  const placeholder = 'NAMESPACE/NAME';
  return {
    help,
    placeholder,
    read: (given, flagName) => {
      const last = given.at(-1);
      if (last === undefined) return undefined;
      const [namespace = '', ...rest] = last.split('/');
      const object = { namespace, name: rest.join('/') };
      if (isObjectName(object)) return object;
      throw new UsageError(`${flagName} must be ${placeholder}, not ${last}`);
    },
  };
}
