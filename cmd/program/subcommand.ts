/** The contract of a subcommand. Each file in `cmd/` exports one, and `subcommands.ts` lists them. */
import type { ConfigurationSources } from '../../src/policy/configuration/configuration.ts';
import type { Part } from '../../src/policy/settings/setting.ts';

export interface OwnFlag {
  /** One sentence for `--help`. */
  readonly help: string;
  /** Placeholder of the value, such as `FILE`. A flag without one is a switch. */
  readonly value?: string;
  readonly short?: string;
}

export interface Invocation {
  readonly positionals: readonly string[];
  /** Values of own flags by name, in order. A switch that is on has one empty value. */
  readonly flags: ReadonlyMap<string, readonly string[]>;
  readonly sources: ConfigurationSources;
  readonly io: Streams;
  readonly stop: AbortSignal;
  /** Every subcommand, for `completion`. */
  readonly subcommands: Readonly<Record<string, Entry>>;
}

/** Standard streams and environment; tests pass their own. */
export interface Streams {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadableStream;
  /** Whether a person looks at standard output. */
  readonly isTerminal?: boolean;
  /** Writes to standard output: the result and nothing else. */
  out(text: string): void;
  err(text: string): void;
  /** Whether standard error is a terminal. Default: it is not. */
  readonly isErrTerminal?: boolean;
}

export interface Subcommand {
  /** Usage after the name: `[FLAGS] IMAGE…`; `[FLAGS]`: no arguments. */
  readonly usage: string;
  readonly description: string;
  /** The part whose settings are flags; `all` for every setting. */
  readonly settings: Part | 'all' | 'none';
  readonly flags: Readonly<Record<string, OwnFlag>>;
  /**
   * Runs the subcommand.
   * @returns the exit code
   * @throws UsageError, ConfigurationError: printed without a stack, exit code 2
   */
  run(invocation: Invocation): Promise<number>;
}

export interface Entry {
  /** One line for `archwright --help`. */
  readonly summary: string;
  readonly load: () => Promise<{ readonly subcommand: Subcommand }>;
}

/**
 * `failure`: `explain`, `report`, `inspect`, `status` or `probe` found something, such as an image that does
 * not exist. `unanswered`: they could not ask everything, so the result is incomplete.
 */
export const exitCodes = { success: 0, failure: 1, usage: 2, unanswered: 3 } as const;

/** Wrong usage. The message says what to change. */
export class UsageError extends Error {
  readonly code = 'usage';
  readonly temporary = false;
  override readonly name = 'UsageError';
}

/**
 * The value of a flag that takes one of several words.
 * @param known the first is the default
 * @throws UsageError
 */
export function choiceOf<Name extends string>(
  { flags }: Pick<Invocation, 'flags'>,
  flag: string,
  known: readonly [Name, ...Name[]],
): Name {
  const given = flags.get(flag)?.at(-1) ?? known[0];
  const choice = known.find((name) => name === given);
  if (choice !== undefined) return choice;
  throw new UsageError(`--${flag} must be ${known.join(' or ')}, not ${given}`);
}
