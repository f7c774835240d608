/**
 * Runs a program of the node once, without a shell and with limits on time and output. Its process group is killed as a whole. If the
 * node's root is mounted in a directory, the program runs in it by `chroot`, with the node's loader, libraries, certificates and files.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { Command } from './command.ts';
import { PluginError } from './plugin-error.ts';
import { describeStderr } from './stderr.ts';

export interface RunLimits {
  readonly timeoutMs: number;
  readonly maxStdoutBytes: number;
  /** More output is read and dropped. */
  readonly maxStderrBytes: number;
  /** Time for reading the pipes after the program has ended. */
  readonly drainMs: number;
}

export const defaultRunLimits: RunLimits = {
  // As in the kubelet (kubernetes pkg/credentialprovider/plugin/plugin.go).
  timeoutMs: 60_000,
  // A response for one registry has about 4 KiB.
  maxStdoutBytes: 1_048_576,
  maxStderrBytes: 8192,
  // All output is in the pipe when the program ends; only a child of it can keep the pipe open.
  drainMs: 500,
};

export interface ProgramRun {
  /** Name of the plugin, for errors. */
  readonly plugin: string;
  readonly command: Command;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string;
  readonly limits?: RunLimits;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/**
 * Runs it to its end.
 * @param signal kills it
 * @returns its standard output
 * @throws PluginError `not-started`, `failed`, `timeout`, `too-much-output` or `stopped`
 */
export async function runProgram(run: ProgramRun, signal?: AbortSignal): Promise<Buffer> {
  if (signal?.aborted === true) throw stopped(run.plugin);
  const { file, args } = run.command;
  let child: Child;
  try {
    child = spawn(file, args, {
      cwd: '/',
      env: run.env,
      // A new session, so that its whole process group can be killed.
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
  } catch (error) {
    // Invalid arguments or variables, for example with a NUL character.
    const reason = error instanceof Error ? error.message : String(error);
    throw new PluginError('not-started', run.plugin, `cannot be started: ${reason}`);
  }
  return new RunningProgram(child, run).wait(signal);
}

class RunningProgram {
  readonly #child: Child;
  readonly #run: ProgramRun;
  readonly #limits: RunLimits;
  readonly #result = Promise.withResolvers<Buffer>();
  readonly #stdout: Buffer[] = [];
  readonly #stderr: Buffer[] = [];
  #stdoutBytes = 0;
  #stderrBytes = 0;
  /** The reason for killing it. */
  #killed: PluginError | undefined;
  #timeout: NodeJS.Timeout | undefined;
  #drain: NodeJS.Timeout | undefined;

  constructor(child: Child, run: ProgramRun) {
    this.#child = child;
    this.#run = run;
    this.#limits = run.limits ?? defaultRunLimits;
  }

  async wait(signal: AbortSignal | undefined): Promise<Buffer> {
    const stop = (): void => this.#kill(stopped(this.#run.plugin));
    signal?.addEventListener('abort', stop, { once: true });
    try {
      this.#start();
      return await this.#result.promise;
    } finally {
      signal?.removeEventListener('abort', stop);
      clearTimeout(this.#timeout);
      clearTimeout(this.#drain);
      for (const pipe of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) pipe.destroy();
    }
  }

  #start(): void {
    const { timeoutMs } = this.#limits;
    const seconds = timeoutMs / 1000;
    this.#timeout = setTimeout(
      () => this.#fail('timeout', `was killed because it did not end within ${seconds} seconds`),
      timeoutMs,
    );
    const child = this.#child;
    child.stdout.on('data', (chunk: Buffer) => this.#onStdout(chunk));
    child.stderr.on('data', (chunk: Buffer) => this.#onStderr(chunk));
    // A program may ignore its request or end early, which breaks the pipes. Its exit status decides.
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.on('error', () => undefined);
    child.on('error', (error) => {
      if (child.pid === undefined) this.#result.reject(notStarted(this.#run, error));
    });
    child.on('exit', () => this.#endSoon());
    child.on('close', () => this.#settle());
    child.stdin.end(this.#run.stdin);
  }

  #onStdout(chunk: Buffer): void {
    const { maxStdoutBytes } = this.#limits;
    this.#stdoutBytes += chunk.length;
    if (this.#stdoutBytes <= maxStdoutBytes) this.#stdout.push(chunk);
    else this.#fail('too-much-output', `was killed because it wrote more than ${maxStdoutBytes} bytes`);
  }

  #onStderr(chunk: Buffer): void {
    const room = this.#limits.maxStderrBytes - this.#stderrBytes;
    if (room > 0) this.#stderr.push(chunk.subarray(0, room));
    this.#stderrBytes += chunk.length;
  }

  #fail(code: 'timeout' | 'too-much-output', message: string): void {
    this.#kill(new PluginError(code, this.#run.plugin, message));
  }

  /** The first reason counts. The end does not depend on the success of the kill. */
  #kill(reason: PluginError): void {
    this.#killed ??= reason;
    killGroup(this.#child.pid);
    this.#endSoon();
  }

  /** Waits for the pipes, and one turn of the event loop longer, because a busy process reads late. */
  #endSoon(): void {
    this.#drain ??= setTimeout(() => setImmediate(() => this.#end()), this.#limits.drainMs);
  }

  /** Kills children that keep the pipes open, except those that left the process group. */
  #end(): void {
    killGroup(this.#child.pid);
    this.#settle();
  }

  #settle(): void {
    const error = this.#killed ?? exitError(this.#run, this.#child, Buffer.concat(this.#stderr));
    if (error === undefined) this.#result.resolve(Buffer.concat(this.#stdout));
    else this.#result.reject(error);
  }
}

/** The error of an exit status; `undefined` for success. */
function exitError(
  { plugin, command: { inRoot } }: ProgramRun,
  { exitCode, signalCode }: { exitCode: number | null; signalCode: NodeJS.Signals | null },
  stderr: Buffer,
): PluginError | undefined {
  if (exitCode === 0) return undefined;
  const status = signalCode === null ? `exit status ${exitCode ?? 'unknown'}` : `signal: ${signalCode}`;
  const output = describeStderr(stderr);
  // coreutils: 125 if chroot itself failed.
  const hint =
    inRoot !== undefined && exitCode === 125
      ? ` (running programs of the node in ${inRoot} takes the capability SYS_CHROOT)`
      : '';
  return new PluginError('failed', plugin, `${status}${output === '' ? '' : `: ${output}`}${hint}`);
}

function notStarted({ plugin, command }: ProgramRun, error: Error): PluginError {
  const code = 'code' in error ? String(error.code) : error.message;
  const hint = command.inRoot === undefined ? '' : ' (the agent’s image needs the program chroot)';
  return new PluginError('not-started', plugin, `${command.file} cannot be started: ${code}${hint}`);
}

function stopped(plugin: string): PluginError {
  return new PluginError('stopped', plugin, 'the agent is stopping');
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // ESRCH: no process of the group is left.
  }
}
