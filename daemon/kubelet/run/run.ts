/**
 * Runs a program of the node once, within limits: a time, so much output, a process group that is killed whole, and never
 * a shell. Where the node's root is mounted somewhere, the program runs in it by `chroot`, so that it finds its own loader,
 * libraries, certificates and files.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { PluginError } from './plugin-error.ts';
import { describeStderr } from './stderr.ts';

export interface RunLimits {
  readonly timeoutMs: number;
  readonly maxStdoutBytes: number;
  /** What is more is read and forgotten. */
  readonly maxStderrBytes: number;
  /** How long what is in the pipes may take to arrive after the program has ended. */
  readonly drainMs: number;
}

export const defaultRunLimits: RunLimits = {
  // As in the kubelet (kubernetes pkg/credentialprovider/plugin/plugin.go).
  timeoutMs: 60_000,
  // A response for one registry has some 4 KiB.
  maxStdoutBytes: 1_048_576,
  maxStderrBytes: 8192,
  // What a program wrote before its end is in the pipe already; only a child that it left behind keeps the pipe open.
  drainMs: 500,
};

export interface PluginRun {
  /** Name of the plugin, for errors. */
  readonly plugin: string;
  readonly command: Command;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string;
  readonly limits?: RunLimits;
}

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  /** The program runs in another root. */
  readonly inRoot?: string;
}

/** Where distributions keep the program `chroot`. */
const chrootPrograms = ['/usr/sbin/chroot', '/usr/bin/chroot', '/sbin/chroot', '/bin/chroot'];

/**
 * How to run a program of the node.
 * @param path of the program, inside the host root
 */
export function hostCommand(hostRoot: string, path: string, args: readonly string[] = []): Command {
  const root = resolve(hostRoot);
  if (root === '/') return { file: path, args };
  const chroot = chrootPrograms.find(isExecutable) ?? 'chroot';
  return { file: chroot, args: [root, path, ...args], inRoot: root };
}

/**
 * Runs it to its end.
 * @param signal kills it
 * @returns its standard output
 * @throws PluginError `not-started`, `failed`, `timeout`, `too-much-output` or `stopped`
 */
export async function runPlugin(run: PluginRun, signal?: AbortSignal): Promise<Buffer> {
  if (signal?.aborted === true) throw new PluginError('stopped', run.plugin, 'the agent is stopping');
  let child: ChildProcessByStdio<Writable, Readable, Readable>;
  try {
    child = spawn(run.command.file, run.command.args, {
      cwd: '/',
      env: run.env,
      // A session of its own, so that all it starts can be killed together.
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
  } catch (error) {
    // Arguments or variables that no process can have, such as those with a NUL character.
    const reason = error instanceof Error ? error.message : String(error);
    throw new PluginError('not-started', run.plugin, `cannot be started: ${reason}`);
  }
  return watch(child, run, signal);
}

function watch(
  child: ChildProcessByStdio<Writable, Readable, Readable>,
  { plugin, command, stdin, limits = defaultRunLimits }: PluginRun,
  signal?: AbortSignal,
): Promise<Buffer> {
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  let stdoutBytes = 0;
  let stderrBytes = 0;

  return new Promise((resolve, reject) => {
    let verdict: PluginError | undefined;
    let drain: NodeJS.Timeout | undefined;
    let settled = false;

    function settle(error?: PluginError): void {
      if (settled) return;
      settled = true;
      clearTimeout(timeout);
      clearTimeout(drain);
      signal?.removeEventListener('abort', stop);
      child.stdin.destroy();
      child.stdout.destroy();
      child.stderr.destroy();
      if (error === undefined) resolve(Buffer.concat(stdout));
      else reject(error);
    }

    /** Ends all of it; the first reason counts. One that cannot even be killed is not waited for. */
    function kill(error: PluginError): void {
      verdict ??= error;
      killGroup(child.pid);
      endSoon();
    }

    /** After a pause, and after what has arrived by then was read: a busy process may be late. */
    function endSoon(): void {
      drain ??= setTimeout(() => setImmediate(finish), limits.drainMs);
    }

    function finish(): void {
      // Whoever still holds the pipes is of the group, or has left it on purpose.
      killGroup(child.pid);
      settle(verdict ?? ended(plugin, command, child, Buffer.concat(stderr)));
    }

    const seconds = limits.timeoutMs / 1000;
    const timeout = setTimeout(() => {
      kill(new PluginError('timeout', plugin, `was killed because it did not end within ${seconds} seconds`));
    }, limits.timeoutMs);
    const stop = (): void => kill(new PluginError('stopped', plugin, 'the agent is stopping'));
    signal?.addEventListener('abort', stop, { once: true });

    child.stdout.on('data', (chunk: Buffer) => {
      stdoutBytes += chunk.length;
      if (stdoutBytes <= limits.maxStdoutBytes) stdout.push(chunk);
      else {
        kill(
          new PluginError(
            'too-much-output',
            plugin,
            `was killed because it wrote more than ${limits.maxStdoutBytes} bytes`,
          ),
        );
      }
    });
    child.stderr.on('data', (chunk: Buffer) => {
      if (stderrBytes < limits.maxStderrBytes)
        stderr.push(chunk.subarray(0, limits.maxStderrBytes - stderrBytes));
      stderrBytes += chunk.length;
    });
    // A program that does not read its request is none the worse for it.
    child.stdin.on('error', ignore);
    child.stdout.on('error', ignore);
    child.stderr.on('error', ignore);
    child.on('error', (error) => {
      if (child.pid === undefined) settle(notStarted(plugin, command, error));
    });
    child.on('exit', endSoon);
    child.on('close', () => {
      settle(verdict ?? ended(plugin, command, child, Buffer.concat(stderr)));
    });
    child.stdin.end(stdin);
  });
}

/** What the end of a program means; `undefined` for success. */
function ended(
  plugin: string,
  command: Command,
  { exitCode, signalCode }: { exitCode: number | null; signalCode: NodeJS.Signals | null },
  stderr: Buffer,
): PluginError | undefined {
  if (exitCode === 0) return undefined;
  const status = signalCode === null ? `exit status ${exitCode ?? 'unknown'}` : `signal: ${signalCode}`;
  const told = describeStderr(stderr);
  // coreutils: 125 where chroot itself failed.
  const hint =
    command.inRoot !== undefined && exitCode === 125
      ? ` (running programs of the node in ${command.inRoot} takes the capability SYS_CHROOT)`
      : '';
  return new PluginError('failed', plugin, `${status}${told === '' ? '' : `: ${told}`}${hint}`);
}

function notStarted(plugin: string, command: Command, error: Error): PluginError {
  const code = 'code' in error ? String(error.code) : error.message;
  const inRoot = command.inRoot === undefined ? '' : ' (the agent’s image needs the program chroot)';
  return new PluginError('not-started', plugin, `${command.file} cannot be started: ${code}${inRoot}`);
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // ESRCH: nobody of it is left.
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function ignore(): void {
  // Pipes of a program that ends early break; its exit status tells what happened.
}
