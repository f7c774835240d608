/** Programs inside the box: started with their output in a file, waited for, and stopped by their own handle. */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export interface Running {
  readonly name: string;
  /** All that it has written so far. */
  log(): string;
  /** Settles with the exit code, or the signal's name, when it has ended. */
  readonly ended: Promise<number | string>;
  hasEnded(): boolean;
  /** Kills it: nothing in the box is worth a graceful end. */
  stop(): Promise<void>;
}

export interface StartOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Everything in the box is ready within seconds; a loaded machine gets more. */
const readyTimeoutMs = 60_000;
const pollMs = 50;
const shownLogCharacters = 1500;

export function start(
  name: string,
  program: string,
  args: readonly string[],
  options: StartOptions,
): Running {
  const file = join('/tmp', `${name}.log`);
  const output = openSync(file, 'w');
  const child: ChildProcess = spawn(program, args, { ...options, stdio: ['ignore', output, output] });
  closeSync(output);
  let over = false;
  const ended = new Promise<number | string>((resolve) => {
    child.on('error', (error) => resolve(error.message));
    child.on('exit', (code, signal) => resolve(code ?? signal ?? ''));
  });
  void ended.then(() => {
    over = true;
  });
  return {
    name,
    log: () => readFileSync(file, 'utf8'),
    ended,
    hasEnded: () => over,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/**
 * Waits until something is true.
 * @param isReady may throw: not yet
 * @throws when the program ends before, or it takes too long; the message has the end of its log
 */
export async function ready(running: Running, isReady: () => Promise<boolean> | boolean): Promise<void> {
  const until = performance.now() + readyTimeoutMs;
  while (!running.hasEnded() && performance.now() < until) {
    try {
      if (await isReady()) return;
    } catch {
      // Not yet.
    }
    await delay(pollMs);
  }
  const end = running.log().slice(-shownLogCharacters);
  throw new Error(`${running.name} ${running.hasEnded() ? 'has ended' : 'is not ready'}:\n${end}`);
}
