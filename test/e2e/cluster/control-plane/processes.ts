/** Child processes: output goes into a file. All end with their parent process. */
import { spawn, type ChildProcess } from 'node:child_process';
import { createWriteStream, existsSync, readFileSync, statSync } from 'node:fs';
import { get, type RequestOptions } from 'node:https';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { onPath } from '../../programs/cache.ts';

export type Running = ReturnType<typeof startProcess>;

export interface StartOptions {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Folder of `<name>.log`, to which output is appended. */
  readonly logs: string;
  readonly cwd?: string;
}

/** Every program here is ready within seconds; a loaded machine needs more. */
const readyTimeoutMs = 90_000;
const pollMs = 25;
const shownLogCharacters = 2000;

/** Ends each process that runs. */
const endings = new Set<() => void>();
process.on('exit', () => endings.forEach((kill) => kill()));

export function startProcess({ name, program, args, env, logs, cwd }: StartOptions) {
  const file = join(logs, `${name}.log`);
  const earlierBytes = existsSync(file) ? statSync(file).size : 0;
  const output = createWriteStream(file, { flags: 'a', mode: 0o600 });
  // With setpriv the kernel ends the child even if this process is killed.
  const setpriv = onPath('setpriv');
  const [command, ...words] =
    setpriv === undefined ? [program, ...args] : [setpriv, '--pdeathsig', 'KILL', '--', program, ...args];
  const child: ChildProcess = spawn(command, words, {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd !== undefined && { cwd }),
  });
  const kill = (): void => void child.kill('SIGKILL');
  endings.add(kill);
  let over = false;
  const ended = new Promise<number | string>((resolve) => {
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => resolve(code ?? signal ?? ''));
  }).then(async (how) => {
    over = true;
    endings.delete(kill);
    await new Promise<void>((resolve) => output.end(() => resolve()));
    return how;
  });
  for (const stream of [child.stdout, child.stderr]) stream?.pipe(output, { end: false });
  return {
    name,
    pid: child.pid ?? 0,
    log: (): string => readFileSync(file).subarray(earlierBytes).toString(),
    /** Resolves with the exit code or the signal's name, when its output is in the file. */
    ended,
    hasEnded: (): boolean => over,
    signal: (signal: NodeJS.Signals): void => void child.kill(signal),
    /** Sends SIGTERM, and SIGKILL after `politeMs`. Default: SIGKILL at once. */
    stop: async (politeMs = 0): Promise<void> => {
      if (over) return;
      if (politeMs > 0) {
        child.kill('SIGTERM');
        const timer = new AbortController();
        const late = pause(politeMs, undefined, { signal: timer.signal }).catch(() => undefined);
        await Promise.race([ended, late]);
        timer.abort();
      }
      if (!over) child.kill('SIGKILL');
      await ended;
    },
  };
}

/**
 * Polls until a process that was just started is ready.
 * @param isReady may throw: not yet
 * @throws Error if the process ends first, or it takes too long; the message has the end of its log
 */
export async function ready(running: Running, isReady: () => Promise<boolean> | boolean): Promise<void> {
  const until = performance.now() + readyTimeoutMs;
  while (!running.hasEnded() && performance.now() < until) {
    try {
      if (await isReady()) return;
    } catch {
      // Not yet.
    }
    await pause(pollMs);
  }
  const end = running.log().slice(-shownLogCharacters);
  throw new Error(`${running.name} ${running.hasEnded() ? 'has ended' : 'is not ready'}:\n${end}`);
}

/** @returns the status of a GET over HTTPS; rejects if there is no response in time */
export function httpsStatus(url: string, tls: RequestOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = get(url, { ...tls, agent: false, timeout: 5000 }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.on('error', reject).on('timeout', () => request.destroy(new Error(`${url} does not answer`)));
  });
}
