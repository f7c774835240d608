/** Programs that are run for what they print: docker credential helpers, and the node's runtime for its version. */
import { basename, dirname } from 'node:path';
import { systemClock, type Clock } from '../src/async/clock.ts';
import type { Credential, Problem } from '../src/credentials/credential.ts';
import {
  HelperConfigError,
  isHelperName,
  parseHelperAnswer,
  saysNotFound,
} from '../src/credentials/docker/credential-helpers.ts';
import { PluginError } from './kubelet/run/plugin-error.ts';
import {
  defaultRunLimits,
  runProgram,
  type Command,
  type ProgramRun,
  type RunLimits,
  hostCommand,
} from './kubelet/run/run.ts';
import { ConfigFileError } from './toml.ts';
import { statPath } from '../src/files/read.ts';
import { checkBinary } from './kubelet/run/binary.ts';
import { baseEnvironment } from './kubelet/run/environment.ts';

/** Less than the limit of a lookup, so that an anonymous attempt is left. An answer has about 4 KiB. */
export const helperLimits: RunLimits = {
  ...defaultRunLimits,
  timeoutMs: 10_000,
  maxStdoutBytes: 256 * 1024,
};

/**
 * What `docker-credential-NAME get` prints.
 * @param commandOf finds the program
 * @returns `undefined`: it has no credential
 * @throws ConfigFileError if it cannot say
 */
export async function askHelper(
  name: string,
  server: string,
  commandOf: (plugin: string) => Command | Promise<Command>,
  { env, limits = helperLimits }: Pick<ProgramRun, 'env' | 'limits'>,
  stop: AbortSignal | undefined,
): Promise<Credential | undefined> {
  const plugin = `docker-credential-${name}`;
  try {
    if (!isHelperName(name)) throw new HelperConfigError('is not the name of a credential helper');
    const command = await commandOf(plugin);
    return parseHelperAnswer(await runProgram({ command, env, stdin: server, limits }, stop));
  } catch (error) {
    if (!(error instanceof PluginError || error instanceof HelperConfigError)) throw error;
    if (error instanceof PluginError && saysNotFound(error.stdout?.toString('utf8') ?? '')) return undefined;
    throw new ConfigFileError(plugin, `no credential for ${server}: ${error.message}`, error);
  }
}

/** The command only prints some lines, but reading the program from a busy disk may take seconds. */
const versionLimits: RunLimits = {
  timeoutMs: 10_000,
  maxStdoutBytes: 4096,
  maxStderrBytes: 4096,
  drainMs: 500,
};

export interface VersionedProgram {
  readonly versionIn: (output: string) => string | undefined;
  /** What a user can do if it cannot be run. */
  readonly remedy: string;
}

export interface FoundVersion {
  readonly version?: string;
  /** Why the version of an existing program is unknown. */
  readonly problem?: Problem;
}

export type VersionFinder = ReturnType<typeof createVersionFinder>;

/** A disk was busy, or a mode was wrong: neither changes the program's file. */
const tryAgainMs = 60_000;

/**
 * A program runs once in the node's root, and again after it was replaced; while its version is unknown, each minute.
 * @param stop kills a running program
 */
export function createVersionFinder(
  program: VersionedProgram,
  hostRoot: string,
  stop: AbortSignal,
  clock: Pick<Clock, 'monotonic'> = systemClock,
) {
  let last: { readonly identity: string; readonly found: FoundVersion; readonly until: number } | undefined;
  return async (paths: readonly string[]): Promise<FoundVersion> => {
    for (const path of paths) {
      const stats = await statPath(path, hostRoot).catch(() => undefined);
      if (stats === undefined) continue;
      const identity = [path, stats.dev, stats.ino, stats.size, stats.mtimeMs].join(' ');
      if (last?.identity === identity && clock.monotonic() < last.until) return last.found;
      const found = await runVersion(program, path, hostRoot, stop);
      const until = found.version === undefined ? clock.monotonic() + tryAgainMs : Infinity;
      last = { identity, found, until };
      return found;
    }
    return {};
  };
}

/** The file itself does not show it: Go stores it among a hundred thousand other strings without terminators. */
async function runVersion(
  { versionIn, remedy }: VersionedProgram,
  origin: string,
  hostRoot: string,
  stop: AbortSignal,
): Promise<FoundVersion> {
  try {
    const path = await checkBinary(basename(origin), { hostRoot, binDir: dirname(origin) });
    const command = hostCommand(hostRoot, path, ['--version']);
    const run = { command, env: baseEnvironment, stdin: '', limits: versionLimits };
    const output = await runProgram(run, stop);
    const version = versionIn(output.toString('utf8'));
    return version === undefined
      ? { problem: { origin, message: `its version cannot be read; ${remedy}` } }
      : { version };
  } catch (error) {
    if (!(error instanceof PluginError)) throw error;
    return { problem: { origin, message: `${error.message}; ${remedy}` } };
  }
}
