/** Runs the program inside the test, and captures its output. */
import { Readable } from 'node:stream';
import { main } from '../../cmd/program/main.ts';
import type { Entry } from '../../cmd/program/subcommand.ts';
import { neverAborted } from '../support/never-aborted.ts';

export interface Result {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly stop?: AbortSignal;
  readonly isErrTerminal?: boolean;
  readonly subcommands?: Readonly<Record<string, Entry>>;
}

/** Runs the program to its end. */
export async function run(args: readonly string[], options: RunOptions = {}): Promise<Result> {
  const { env = {}, stdin = '', stop = neverAborted, isErrTerminal = false, subcommands } = options;
  let out = '';
  let err = '';
  const code = await main(args, {
    io: {
      env,
      stdin: Readable.from([stdin]),
      out: (text) => (out += text),
      err: (text) => (err += text),
      isErrTerminal,
    },
    stop,
    ...(subcommands && { subcommands }),
  });
  return { code, out, err };
}
