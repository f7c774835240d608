/**
 * The version of the node's containerd, as its program says it: `containerd --version`, run in the node's root within a time limit.
 * Reading it out of the file would be guessing: Go keeps the version among a hundred thousand other texts without an end.
 */
import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { FileError } from '../../../src/files/error.ts';
import { resolveInRoot } from '../../../src/files/root.ts';
import { checkBinary } from '../../kubelet/run/binary.ts';
import { baseEnvironment, environmentObject } from '../../kubelet/run/environment.ts';
import { PluginError } from '../../kubelet/run/plugin-error.ts';
import { hostCommand, runPlugin, type RunLimits } from '../../kubelet/run/run.ts';
import { parseVersion } from './rules.ts';

/** It prints one line and does nothing else; a cold disk of a busy node may take seconds. */
const limits: RunLimits = { timeoutMs: 10_000, maxStdoutBytes: 4096, maxStderrBytes: 4096, drainMs: 500 };

export interface FoundVersion {
  readonly version?: string;
  /** Why there is no version although there is a program. */
  readonly problem?: { readonly where: string; readonly message: string };
}

export interface VersionFinder {
  /** The version of the first program that exists. A program is run once, and again after it was replaced. */
  find(programs: readonly string[]): Promise<FoundVersion>;
}

/** @param stop kills what runs */
export function createVersionFinder(hostRoot: string, stop: AbortSignal): VersionFinder {
  let last: { readonly identity: string; readonly found: FoundVersion } | undefined;
  return {
    find: async (programs) => {
      for (const program of programs) {
        const identity = await identityOf(program, hostRoot);
        if (identity === undefined) continue;
        if (last?.identity !== identity) last = { identity, found: await ask(program, hostRoot, stop) };
        return last.found;
      }
      return {};
    },
  };
}

/** Equal as long as the program is the same file; undefined where there is none. */
async function identityOf(program: string, hostRoot: string): Promise<string | undefined> {
  try {
    const { dev, ino, size, mtimeMs } = await stat(await resolveInRoot(hostRoot, program));
    return [program, dev, ino, size, mtimeMs].join(' ');
  } catch (error) {
    if (error instanceof FileError || (error instanceof Error && 'code' in error)) return undefined;
    throw error;
  }
}

async function ask(program: string, hostRoot: string, stop: AbortSignal): Promise<FoundVersion> {
  try {
    const path = await checkBinary(basename(program), { hostRoot, binDir: dirname(program) });
    const command = hostCommand(hostRoot, path, ['--version']);
    const env = environmentObject(baseEnvironment);
    const output = await runPlugin({ plugin: 'containerd', command, env, stdin: '', limits }, stop);
    const version = versionIn(output.toString('utf8'));
    if (version !== undefined) return { version };
    return { problem: { where: program, message: 'it does not tell its version; set containerdVersion' } };
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
