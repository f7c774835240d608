/** Runs the program inside the test, and captures its output. */
import { Readable } from 'node:stream';
import { main } from '../../cmd/program/main.ts';
import type { Entry } from '../../cmd/program/subcommand.ts';
import { neverAborted } from '../support/never-aborted.ts';

export type Result = Awaited<ReturnType<typeof start>['ended']>;

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly stop?: AbortSignal;
  readonly isErrTerminal?: boolean;
  readonly subcommands?: Readonly<Record<string, Entry>>;
}

/** Runs the program to its end. */
export function run(args: readonly string[], options: RunOptions = {}): Promise<Result> {
  return start(args, options).ended;
}

/** Starts the program. @returns `err`: what it has written to standard error so far */
export function start(args: readonly string[], options: RunOptions = {}) {
  const { env = {}, stdin = '', stop = neverAborted, isErrTerminal = false, subcommands } = options;
  const written = { out: '', err: '' };
  const io = {
    env,
    stdin: Readable.from([stdin]),
    out: (text: string) => void (written.out += text),
    err: (text: string) => void (written.err += text),
    isErrTerminal,
  };
  const ending = main(args, { io, stop, ...(subcommands && { subcommands }) });
  return { err: () => written.err, ended: ending.then((code) => ({ code, ...written })) };
}
