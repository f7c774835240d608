/**
 * The version of the node's containerd: `containerd --version`, run in the node's root with a time limit. The version cannot be read
 * from the file: Go stores it among a hundred thousand other strings without terminators.
 */
import { basename, dirname } from 'node:path';
import { statPath } from '../../../src/files/read.ts';
import { checkBinary } from '../../kubelet/run/binary.ts';
import { baseEnvironment, environmentObject } from '../../kubelet/run/environment.ts';
import { hostCommand } from '../../kubelet/run/command.ts';
import { PluginError } from '../../kubelet/run/plugin-error.ts';
import { runProgram, type RunLimits } from '../../kubelet/run/run.ts';
import { parseVersion } from './rules.ts';

/** The command only prints one line, but reading the program from a busy disk may take seconds. */
const limits: RunLimits = { timeoutMs: 10_000, maxStdoutBytes: 4096, maxStderrBytes: 4096, drainMs: 500 };

export interface FoundVersion {
  readonly version?: string;
  /** Why the version of an existing program is unknown. */
  readonly problem?: { readonly where: string; readonly message: string };
}

export interface VersionFinder {
  /** The version of the first program that exists. A program runs once, and again after it was replaced. */
  find(programs: readonly string[]): Promise<FoundVersion>;
}

/** @param stop kills a running program */
export function createVersionFinder(hostRoot: string, stop: AbortSignal): VersionFinder {
  let last: { readonly identity: string; readonly found: FoundVersion } | undefined;
  return {
    find: async (programs) => {
      for (const program of programs) {
        const identity = await identityOf(program, hostRoot);
        if (identity === undefined) continue;
        if (last?.identity !== identity)
          last = { identity, found: await runVersion(program, hostRoot, stop) };
        return last.found;
      }
      return {};
    },
  };
}

/** Changes when the program is replaced; undefined if it is missing or cannot be read. */
async function identityOf(program: string, hostRoot: string): Promise<string | undefined> {
  const stats = await statPath(program, hostRoot).catch(() => undefined);
  return stats && [program, stats.dev, stats.ino, stats.size, stats.mtimeMs].join(' ');
}

async function runVersion(program: string, hostRoot: string, stop: AbortSignal): Promise<FoundVersion> {
  try {
    const path = await checkBinary(basename(program), { hostRoot, binDir: dirname(program) });
    const command = hostCommand(hostRoot, path, ['--version']);
    const env = environmentObject(baseEnvironment);
    const output = await runProgram({ plugin: 'containerd', command, env, stdin: '', limits }, stop);
    const version = versionIn(output.toString('utf8'));
    if (version !== undefined) return { version };
    return { problem: { where: program, message: 'its version cannot be read; set containerdVersion' } };
  } catch (error) {
    if (!(error instanceof PluginError)) throw error;
    return { problem: { where: program, message: `${error.message}; set containerdVersion` } };
  }
}

/** `containerd github.com/containerd/containerd/v2 v2.1.4 <revision>` */
function versionIn(output: string): string | undefined {
  const version = /^containerd \S+ (\S+)/m.exec(output)?.[1];
  return version !== undefined && parseVersion(version) !== undefined ? version : undefined;
}
