/**
 * Runs a program of the node once, without a shell and with limits on time and output. Its process group is
 * killed as a whole. If the node's root is mounted in a directory, the program runs in it by `chroot`, with
 * the node's loader, libraries, certificates and files.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { scrub } from '../../../src/telemetry/scrub.ts';
import { PluginError, type PluginErrorCode } from './plugin-error.ts';
import { messageOf } from '../../../src/names/printable.ts';

export const defaultRunLimits = {
  /** The kubelet's limit (kubernetes pkg/credentialprovider/plugin/plugin.go). */
  timeoutMs: 60_000,
  /** A response for one registry has about 4 KiB. */
  maxStdoutBytes: 1_048_576,
  /** More output is read and dropped. */
  maxStderrBytes: 8192,
  /** The time to read the pipes after the program's end; only its children can keep them open. */
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
  return await resultOf(child, run, signal);
}

async function resultOf(child: Child, run: ProgramRun, signal?: AbortSignal): Promise<Buffer> {
  const { timeoutMs, maxStdoutBytes, maxStderrBytes, drainMs } = run.limits ?? defaultRunLimits;
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  let [stdoutBytes, stderrBytes] = [0, 0];
  const ended = Promise.withResolvers<void>();
  let killed: PluginError | undefined;
  let draining: NodeJS.Timeout | undefined;
  /** Waits for the pipes, and one turn of the event loop longer, because a busy process reads late. */
  const endSoon = (): void => {
    const end = (): void => {
      // Kills children that keep the pipes open, except those that left the process group.
      killGroup(child.pid);
      ended.resolve();
    };
    draining ??= setTimeout(() => setImmediate(end), drainMs);
  };
  /** The first reason counts. The end does not depend on the success of the kill. */
  const kill = (code: PluginErrorCode, message: string): void => {
    killed ??= new PluginError(code, message);
    killGroup(child.pid);
    endSoon();
  };
  const stop = (): void => kill('stopped', stopping);
  const late = `was killed because it did not end within ${timeoutMs / 1000} seconds`;
  const timeout = setTimeout(() => kill('timeout', late), timeoutMs);
  signal?.addEventListener('abort', stop, { once: true });
  child.stdout.on('data', (chunk: Buffer) => {
    stdoutBytes += chunk.length;
    if (stdoutBytes <= maxStdoutBytes) stdout.push(chunk);
    else kill('too-much-output', `was killed because it wrote more than ${maxStdoutBytes} bytes`);
  });
  child.stderr.on('data', (chunk: Buffer) => {
    if (stderrBytes < maxStderrBytes) stderr.push(chunk.subarray(0, maxStderrBytes - stderrBytes));
    stderrBytes += chunk.length;
  });
  // A program may ignore its request or end early, which breaks the pipes. Its exit status decides.
  const pipes = [child.stdin, child.stdout, child.stderr];
  for (const pipe of pipes) pipe.on('error', () => undefined);
  child.on('error', (error) => {
    if (child.pid === undefined) ended.reject(notStarted(run, error));
  });
  child.on('exit', endSoon);
  child.on('close', ended.resolve);
  try {
    child.stdin.end(run.stdin);
    await ended.promise;
  } finally {
    signal?.removeEventListener('abort', stop);
    clearTimeout(timeout);
    clearTimeout(draining);
    for (const pipe of pipes) pipe.destroy();
  }
  const error = killed ?? exitError(run, child, Buffer.concat(stderr), Buffer.concat(stdout));
  if (error !== undefined) throw error;
  return Buffer.concat(stdout);
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
  const chroot = chrootPrograms.find((path) => existsSync(path)) ?? 'chroot';
  return { file: chroot, args: [root, path, ...args], inRoot: root };
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
