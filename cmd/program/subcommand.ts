/** The contract of a subcommand. Each file in `cmd/` exports one, and `subcommands.ts` lists them. */
import type { ConfigurationSources } from '../../src/policy/configuration/configuration.ts';
import type { Part } from '../../src/policy/settings/setting.ts';
import type { Flags, FlagValues } from './flag.ts';

/** A call of a subcommand that has at least the flags `F`. */
export interface Invocation<F extends Flags = Flags> {
  readonly positionals: readonly string[];
  readonly flags: FlagValues<F>;
  /** Names of its own flags that the command line has. */
  readonly given: ReadonlySet<string>;
  readonly sources: ConfigurationSources;
  readonly io: Streams;
  /** Writes a line to standard error, once, without secrets. Errors are thrown; `main.ts` prints them. */
  readonly say: (message: string, kind?: 'warning' | 'note') => void;
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

export interface Subcommand<F extends Flags = Flags> {
  /** Usage after the name: `[FLAGS] IMAGE…`; `[FLAGS]`: no arguments. */
  readonly usage: string;
  readonly description: string;
  /** The part whose settings are flags; `all` for every setting. */
  readonly settings: Part | 'all' | 'none';
  readonly flags: F;
  /** @returns the exit code @throws UsageError, FileError, ConfigurationError: 2; KubeError: 3; Failure: its own */
  run(invocation: Invocation<F>): Promise<number>;
}

export interface Entry {
  readonly summary: string;
  readonly load: () => Promise<{ readonly subcommand: Subcommand }>;
}
