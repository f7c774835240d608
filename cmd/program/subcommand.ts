/**
 * What a subcommand is. Each has a file of its own that exports one `Subcommand`, and a line in `subcommands.ts`;
 * parsing, help, exit codes and the handling of errors are the same for all.
 */
import type { ConfigurationSources } from '../../src/policy/configuration/configuration.ts';
import type { Part } from '../../src/policy/settings/setting.ts';

/** A flag of one subcommand that is no setting. */
export interface OwnFlag {
  /** One sentence for `--help`. */
  readonly help: string;
  /** What stands behind the flag, such as `FILE`; a flag without it is a switch. */
  readonly value?: string;
  /** One letter. */
  readonly short?: string;
}

/** What the program was called with, checked and taken apart. */
export interface Invocation {
  /** What is no flag. */
  readonly positionals: readonly string[];
  /** Texts of own flags by name, in the order given. A switch that is on has one empty text. */
  readonly flags: ReadonlyMap<string, readonly string[]>;
  /** Where the configuration comes from. */
  readonly sources: ConfigurationSources;
  readonly io: Streams;
  /** Aborts when the program was told to stop. */
  readonly stop: AbortSignal;
  /** Every subcommand, for `completion`. */
  readonly subcommands: Readonly<Record<string, Entry>>;
}

/** The outside of the process, so that tests can stand in for it. */
export interface Streams {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadableStream;
  /** Takes a text for standard output: the answer, and nothing else. */
  out(text: string): void;
  /** Takes a text for standard error. */
  err(text: string): void;
}

export interface Subcommand {
  /** What follows the name: `[FLAGS] IMAGE…`. */
  readonly usage: string;
  /** A paragraph for `--help`. */
  readonly description: string;
  /** The part whose settings can be given as flags; `all` for those of every part. */
  readonly settings: Part | 'all' | 'none';
  /** By name, without the two dashes. */
  readonly flags: Readonly<Record<string, OwnFlag>>;
  /**
   * Does the work.
   * @returns the exit code
   * @throws UsageError, ConfigurationError: told without a stack, exit code 2
   */
  run(invocation: Invocation): Promise<number>;
}

/** A subcommand in the list of `subcommands.ts`. */
export interface Entry {
  /** One line for `archwright --help`. */
  readonly summary: string;
  readonly load: () => Promise<{ readonly subcommand: Subcommand }>;
}

/** Exit codes. Subcommands may give 1 a more exact meaning, such as "some not found". */
export const exitCodes = { success: 0, failure: 1, usage: 2 } as const;

/** The program was called wrongly; the message says how to do it right. */
export class UsageError extends Error {
  readonly code = 'usage';
  readonly temporary = false;
  /** The subcommand that was called; empty for the program itself. */
  readonly where: string;
  constructor(where: string, message: string) {
    super(message);
    this.name = 'UsageError';
    this.where = where;
  }
}
