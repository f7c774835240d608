/** The program as a function: runs a subcommand, and turns an error into one line and an exit code. */
import { FileError } from '../../src/files/read.ts';
import { KubeError } from '../../src/kube/api/errors.ts';
import { didYouMean } from '../../src/names/suggestion.ts';
import { ConfigurationError, describeProblem } from '../../src/policy/configuration/layer.ts';
import { scrub } from '../../src/telemetry/scrub.ts';
import { parseFlags } from './flags.ts';
import { programHelp, subcommandHelp } from './help.ts';
import { exitCodes, Failure, UsageError } from './exit.ts';
import { eraseLine } from './terminal.ts';
import type { Entry, Invocation, Streams } from './subcommand.ts';
import { subcommands } from './subcommands.ts';
import { programVersion } from './version.ts';
import { messageOf } from '../../src/names/printable.ts';

interface MainOptions {
  readonly io: Streams;
  readonly stop: AbortSignal;
  readonly subcommands?: Invocation['subcommands'];
}

/** @param args those after the program's name @returns the exit code; never throws */
export async function main(args: readonly string[], options: MainOptions): Promise<number> {
  const { io, subcommands: known = subcommands } = options;
  const [name = ''] = args;
  const command = Object.hasOwn(known, name) ? `archwright ${name}` : 'archwright';
  try {
    return await run(args, known, { ...options, say: createSay(io, command) });
  } catch (error) {
    const { text, code } = endOf(error, command, wantsStack(args, io.env));
    io.err(scrub(text));
    return code;
  }
}

function endOf(error: unknown, command: string, withStack: boolean) {
  if (error instanceof UsageError || error instanceof FileError)
    return { text: `${command}: ${error.message}\nSee ${command} --help.\n`, code: exitCodes.usage };
  if (error instanceof ConfigurationError) {
    const lines = error.problems.map((problem) => `archwright: ${describeProblem(problem)}\n`);
    return { text: lines.join(''), code: exitCodes.usage };
  }
  if (error instanceof Failure) return { text: `${command}: ${error.message}\n`, code: error.exitCode };
  if (error instanceof KubeError)
    return { text: describeFailure(error, withStack, command), code: exitCodes.unanswered };
  return { text: describeFailure(error, withStack), code: exitCodes.failure };
}

/** More are rarely the same; a command that prints more of them prints repeated ones again. */
const maxRemembered = 1000;

function createSay(io: Streams, command: string): Invocation['say'] {
  const said = new Set<string>();
  return (message, kind) => {
    const line = `${kind === undefined ? command : `archwright: ${kind}`}: ${message}\n`;
    if (said.has(line)) return;
    if (said.size < maxRemembered) said.add(line);
    // Progress may be on the line.
    io.err(scrub(io.isErrTerminal ? eraseLine + line : line));
  };
}

async function run(
  args: readonly string[],
  known: Invocation['subcommands'],
  { io, stop, say }: MainOptions & Pick<Invocation, 'say'>,
): Promise<number> {
  const [name, ...rest] = args;
  if (name === '--help' || name === '-h' || name === 'help') {
    const [of] = rest;
    if (of === undefined) io.out(programHelp(known));
    else io.out(subcommandHelp(of, (await entryOf(of, known).load()).subcommand, 'described'));
    return exitCodes.success;
  }
  if (name === '--version') {
    io.out(`archwright ${programVersion.version} (${programVersion.commit})\n`);
    return exitCodes.success;
  }
  if (name === undefined) throw new UsageError(`name a subcommand: ${Object.keys(known).join(', ')}`);
  const { subcommand } = await entryOf(name, known).load();
  const flags = parseFlags(subcommand, rest);
  if (flags.help) {
    io.out(subcommandHelp(name, subcommand));
    return exitCodes.success;
  }
  const { positionals } = flags;
  if (subcommand.usage === '[FLAGS]' && positionals.length > 0)
    throw new UsageError(`takes no arguments, but got ${positionals.join(', ')}`);
  const file = flags.config ?? io.env['ARCHWRIGHT_CONFIG'];
  const { settings } = subcommand;
  const part = settings === 'all' || settings === 'none' ? undefined : settings;
  return subcommand.run({
    positionals,
    flags: flags.own,
    given: flags.given,
    sources: { file, env: io.env, flags: flags.settings, part },
    io,
    say,
    stop,
    subcommands: known,
  });
}

/** @throws UsageError for an unknown name */
function entryOf(name: string, known: Invocation['subcommands']): Entry {
  const entry = Object.hasOwn(known, name) ? known[name] : undefined;
  if (entry) return entry;
  const what = name.startsWith('-') ? 'flag' : 'subcommand';
  const candidates = what === 'flag' ? ['--help', '--version'] : Object.keys(known);
  throw new UsageError(`unknown ${what} ${name}${didYouMean(name, candidates)}`);
}

/** An unexpected error as one line, or with its stack. Scrub it before it is written. */
export function describeFailure(error: unknown, withStack: boolean, command = 'archwright'): string {
  const stack = error instanceof Error && withStack ? error.stack : undefined;
  return `${command}: ${stack ?? messageOf(error).split('\n', 1)[0]}\n`;
}

/** Whether to print stacks. Does not read the configuration, because that may be what failed. */
export function wantsStack(args: readonly string[], env: Streams['env']): boolean {
  const flag = args.findIndex((arg) => arg === '--log-level' || arg.startsWith('--log-level='));
  const given = args[flag]?.split('=')[1] ?? (flag < 0 ? env['ARCHWRIGHT_LOG_LEVEL'] : args[flag + 1]);
  return given === 'debug' || given === 'trace';
}
