/**
 * Runs a program of the node once, without a shell and with limits on time and output. Its process group is
 * killed as a whole. If the node's root is mounted in a directory, the program runs in it by `chroot`, with
 * the node's loader, libraries, certificates and files.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { scrub } from '../../../src/telemetry/scrub.ts';
import { PluginError } from './plugin-error.ts';
import { messageOf } from '../../../src/names/printable.ts';

export const defaultRunLimits = {
  /** As in the kubelet (kubernetes pkg/credentialprovider/plugin/plugin.go). */
  timeoutMs: 60_000,
  /** A response for one registry has about 4 KiB. */
  maxStdoutBytes: 1_048_576,
  /** More output is read and dropped. */
  maxStderrBytes: 8192,
  /** For reading the pipes after the end of the program; only its children can keep them open. */
  drainMs: 500,
};

export type RunLimits = Readonly<typeof defaultRunLimits>;

export interface ProgramRun {
  readonly command: Command;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string;
  readonly limits?: RunLimits | undefined;
}

const stopping = 'the agent is stopping';

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** @returns standard output @param signal kills it @throws PluginError, such as `failed` or `timeout` */
export async function runProgram(run: ProgramRun, signal?: AbortSignal): Promise<Buffer> {
  if (signal?.aborted === true) throw new PluginError('stopped', stopping);
  const { file, args } = run.command;
  let child: Child;
  try {
    child = spawn(file, args, {
      cwd: '/',
      env: run.env,
      // A new session, so that its whole process group can be killed.
      detached: true,
      stdio: 'pipe',
    });
  } catch (error) {
    // Invalid arguments or variables, for example with a NUL character.
    throw new PluginError('not-started', `cannot be started: ${messageOf(error)}`);
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
  #killed: PluginError | undefined;
  #timeout: NodeJS.Timeout | undefined;
  #drain: NodeJS.Timeout | undefined;

  constructor(child: Child, run: ProgramRun) {
    this.#child = child;
    this.#run = run;
    this.#limits = run.limits ?? defaultRunLimits;
  }

  async wait(signal: AbortSignal | undefined): Promise<Buffer> {
    const stop = (): void => this.#kill('stopped', stopping);
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
    const late = `was killed because it did not end within ${timeoutMs / 1000} seconds`;
    this.#timeout = setTimeout(() => this.#kill('timeout', late), timeoutMs);
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
    else this.#kill('too-much-output', `was killed because it wrote more than ${maxStdoutBytes} bytes`);
  }

  #onStderr(chunk: Buffer): void {
    const room = this.#limits.maxStderrBytes - this.#stderrBytes;
    if (room > 0) this.#stderr.push(chunk.subarray(0, room));
    this.#stderrBytes += chunk.length;
  }

  /** The first reason counts. The end does not depend on the success of the kill. */
  #kill(code: 'timeout' | 'too-much-output' | 'stopped', message: string): void {
    this.#killed ??= new PluginError(code, message);
    killGroup(this.#child.pid);
    this.#endSoon();
  }

  /** Waits for the pipes, and one turn of the event loop longer, because a busy process reads late. */
  #endSoon(): void {
    const end = (): void => {
      // Kills children that keep the pipes open, except those that left the process group.
      killGroup(this.#child.pid);
      this.#settle();
    };
    this.#drain ??= setTimeout(() => setImmediate(end), this.#limits.drainMs);
  }

  #settle(): void {
    const error =
      this.#killed ??
      exitError(this.#run, this.#child, Buffer.concat(this.#stderr), Buffer.concat(this.#stdout));
    if (error === undefined) this.#result.resolve(Buffer.concat(this.#stdout));
    else this.#result.reject(error);
  }
}

function exitError(
  { command: { inRoot } }: ProgramRun,
  { exitCode, signalCode }: { exitCode: number | null; signalCode: NodeJS.Signals | null },
  stderr: Buffer,
  stdout: Buffer,
): PluginError | undefined {
  if (exitCode === 0) return undefined;
  const status = signalCode === null ? `exit status ${exitCode ?? 'unknown'}` : `signal: ${signalCode}`;
  const output = describeStderr(stderr);
  // coreutils: 125 if chroot itself failed.
  const hint =
    inRoot !== undefined && exitCode === 125
      ? ` (running programs of the node in ${inRoot} takes the capability SYS_CHROOT)`
      : '';
  return new PluginError('failed', `${status}${output === '' ? '' : `: ${output}`}${hint}`, stdout);
}

function notStarted({ command }: ProgramRun, error: Error): PluginError {
  const code = 'code' in error ? String(error.code) : error.message;
  const hint = command.inRoot === undefined ? '' : ' (the agent’s image needs the program chroot)';
  return new PluginError('not-started', `${command.file} cannot be started: ${code}${hint}`);
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // ESRCH: no process of the group is left.
  }
}

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  /** The root directory of the program, if it is not our own. */
  readonly inRoot?: string;
}

/** Paths of `chroot` in distributions. */
const chrootPrograms = ['/usr/sbin/chroot', '/usr/bin/chroot', '/sbin/chroot', '/bin/chroot'];

/** The command, with `chroot` if the node's root is a mounted directory. @param path in that root */
export function hostCommand(hostRoot: string, path: string, args: readonly string[] = []): Command {
  const root = resolve(hostRoot);
  if (root === '/') return { file: path, args };
  const chroot = chrootPrograms.find(isExecutable) ?? 'chroot';
  return { file: chroot, args: [root, path, ...args], inRoot: root };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Enough for a log line. */
const maxMessageLength = 1000;

const looksSecret: readonly RegExp[] = [
  // Authorization headers and schemes.
  /\b(?:basic|bearer)\s+[^\s"',;]+/gi,
  // password=…, "token": "…", --secret …: the value.
  /(?<=(?:passw(?:or)?d|passwd|pwd|secret|token|credentials?|authorization|api[-_]?key|access[-_]?key|session)[\w-]*["']?\s*[:=]\s*)(?:"[^"]*"?|'[^']*'?|[^\s,;}"']+)/gi,
  // https://user:password@host
  /(?<=:\/\/)[^\s/@]+@/g,
  // JSON web tokens.
  /\beyJ[\w-]+(?:\.[\w-]*)*/g,
  // Long words with upper case, lower case and digits: keys and tokens, rarely paths or names.
  /(?=[\w+/=-]*[a-z])(?=[\w+/=-]*[A-Z])(?=[\w+/=-]*\d)[\w+/=-]{20,}/g,
];

/**
 * The standard error of a failed plugin as a message: one line of printable text, of limited length, without
 * known secrets and texts that look like credentials, because a plugin may print secrets that the agent does
 * not know.
 */
export function describeStderr(bytes: Buffer): string {
  const text = bytes
    .toString('utf8')
    // oxlint-disable-next-line no-control-regex
    .replaceAll(/\u001b\[[0-9;]*[A-Za-z]/g, '')
    .replaceAll(/[^\p{L}\p{M}\p{N}\p{P}\p{S}]+/gu, ' ')
    .trim();
  let clean = scrub(text);
  for (const pattern of looksSecret) clean = clean.replaceAll(pattern, '[secret]');
  return clean.length > maxMessageLength ? `${clean.slice(0, maxMessageLength)}…` : clean;
}
