/**
 * Child processes of a cluster: output into a file, followed by its lines, ended by their own handle. None outlives the process
 * that started it, however that one ends.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { createWriteStream, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { onPath } from '../parts.ts';

export interface Running {
  readonly name: string;
  readonly pid: number;
  /** All that it has written so far. */
  log(): string;
  /** Hears each further line that it writes. */
  onLine(listener: (line: string) => void): void;
  /** Settles with the exit code, or the signal's name, when it has ended. */
  readonly ended: Promise<number | string>;
  hasEnded(): boolean;
  signal(signal: NodeJS.Signals): void;
  /** Ends it: politely for so long, then at once. By default at once. */
  stop(politeMs?: number): Promise<void>;
}

export interface StartOptions {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Where `<name>.log` is written. */
  readonly logs: string;
}

/** Everything is ready within seconds; a loaded machine gets more. */
const readyTimeoutMs = 90_000;
const pollMs = 25;
const shownLogCharacters = 2000;

/** Ends each process that runs. */
const endings = new Set<() => void>();
process.on('exit', () => endings.forEach((kill) => kill()));

export function startProcess({ name, program, args, env, logs }: StartOptions): Running {
  const file = join(logs, `${name}.log`);
  const output = createWriteStream(file, { flags: 'a', mode: 0o600 });
  // With it the kernel ends the child even where this process is killed.
  const setpriv = onPath('setpriv');
  const [command, ...words] =
    setpriv === undefined ? [program, ...args] : [setpriv, '--pdeathsig', 'KILL', '--', program, ...args];
  const child: ChildProcess = spawn(command, words, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const listeners: ((line: string) => void)[] = [];
  const kill = (): void => void child.kill('SIGKILL');
  endings.add(kill);
  let over = false;
  const ended = new Promise<number | string>((resolve) => {
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => resolve(code ?? signal ?? ''));
  }).then((how) => {
    over = true;
    endings.delete(kill);
    output.end();
    return how;
  });
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream }).on('line', (line) => {
      output.write(`${line}\n`);
      for (const listener of listeners) listener(line);
    });
  }
  return {
    name,
    pid: child.pid ?? 0,
    log: () => readFileSync(file, 'utf8'),
    onLine: (listener) => void listeners.push(listener),
    ended,
    hasEnded: () => over,
    signal: (signal) => void child.kill(signal),
    stop: async (politeMs = 0) => {
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
 * Waits until a process that has just been started is ready; there is nothing yet that could tell.
 * @param isReady may throw: not yet
 * @throws when the program ends before, or it takes too long; the message has the end of its log
 */
export async function ready(running: Running, isReady: () => Promise<boolean>): Promise<void> {
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
