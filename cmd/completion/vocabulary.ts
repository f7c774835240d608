/** The words that a shell can complete: each subcommand with its flags, from the descriptions that `--help` is made from. */
import { flagName } from '../../src/policy/settings/setting.ts';
import { settingsOf } from '../program/flags.ts';
import type { Subcommand } from '../program/subcommand.ts';
import type { Entry } from '../program/subcommand.ts';

export interface Word {
  /** With its dashes, where it is a flag. */
  readonly word: string;
  readonly help: string;
}

export interface CompletedSubcommand extends Word {
  readonly flags: readonly Word[];
  /** Words that are no flags, such as the shells of `completion`. */
  readonly words: readonly string[];
}

export type Vocabulary = readonly CompletedSubcommand[];

/** Loads every subcommand's description. */
export async function vocabularyOf(entries: Readonly<Record<string, Entry>>): Promise<Vocabulary> {
  return await Promise.all(
    Object.entries(entries).map(async ([word, entry]) => {
      const { subcommand } = await entry.load();
      return { word, help: entry.summary, flags: flagsOf(subcommand), words: wordsOf(subcommand) };
    }),
  );
}

function flagsOf(subcommand: Subcommand): readonly Word[] {
  const own = Object.entries(subcommand.flags).map(([name, { help }]) => ({ word: `--${name}`, help }));
  const settings = Object.entries(settingsOf(subcommand)).flatMap(([key, { kind, help }]) => {
    const name = flagName(key);
    const flag = { word: `--${name}`, help };
    return kind.isSwitch ? [flag, { word: `--no-${name}`, help }] : [flag];
  });
  const config =
    subcommand.settings === 'none' ? [] : [{ word: '--config', help: 'The configuration, in TOML.' }];
  return [...own, ...config, { word: '--help', help: 'Prints help.' }, ...settings];
}

/** What may stand first: the alternatives of a usage such as `check [FLAGS] [FILE] | print [FLAGS] [FILE]`. */
function wordsOf({ usage }: Subcommand): readonly string[] {
  const words = usage.includes(' | ') ? usage.split(' | ') : (usage.split(' ')[0] ?? '').split('|');
  return words.map((alternative) => alternative.split(' ')[0] ?? '').filter((word) => /^[a-z]+$/.test(word));
}
