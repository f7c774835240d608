/**
 * The version of a node's runtime: what its program prints for `--version`, run in the node's root with a time
 * limit. The version cannot be read from the file: Go stores it among a hundred thousand other strings without
 * terminators.
 */
import { basename, dirname } from 'node:path';
import type { Problem } from '../src/credentials/credential.ts';
import { statPath } from '../src/files/read.ts';
import { checkBinary } from './kubelet/run/binary.ts';
import { baseEnvironment } from './kubelet/run/environment.ts';
import { PluginError } from './kubelet/run/plugin-error.ts';
import { hostCommand, runProgram, type RunLimits } from './kubelet/run/run.ts';

/** The command only prints some lines, but reading the program from a busy disk may take seconds. */
const limits: RunLimits = { timeoutMs: 10_000, maxStdoutBytes: 4096, maxStderrBytes: 4096, drainMs: 500 };

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

/** A program runs once, and again after it was replaced. @param stop kills a running program */
export function createVersionFinder(program: VersionedProgram, hostRoot: string, stop: AbortSignal) {
  let last: { readonly identity: string; readonly found: FoundVersion } | undefined;
  return async (paths: readonly string[]): Promise<FoundVersion> => {
    for (const path of paths) {
      const stats = await statPath(path, hostRoot).catch(() => undefined);
      if (stats === undefined) continue;
      const identity = [path, stats.dev, stats.ino, stats.size, stats.mtimeMs].join(' ');
      if (last?.identity !== identity)
        last = { identity, found: await runVersion(program, path, hostRoot, stop) };
      return last.found;
    }
    return {};
  };
}

async function runVersion(
  { versionIn, remedy }: VersionedProgram,
  origin: string,
  hostRoot: string,
  stop: AbortSignal,
): Promise<FoundVersion> {
  try {
    const path = await checkBinary(basename(origin), { hostRoot, binDir: dirname(origin) });
    const command = hostCommand(hostRoot, path, ['--version']);
    const run = { command, env: baseEnvironment, stdin: '', limits };
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
