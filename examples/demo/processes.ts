/**
 * The program as child processes: started with this process's Node, followed by log lines, ended by id. All
 * end with the demo.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { DemoError } from './error.ts';

const program = fileURLToPath(new URL('../../cmd/archwright.ts', import.meta.url));

/** A process starts in less than a second; a loaded machine gets more. */
const startTimeoutMs = 300_000;
/** After SIGTERM the webhook serves for some seconds, for its clients. Here no client remains. */
const politeMs = 300;
const secondSignalMs = 3000;
/** Lines of the log that are shown when a process failed. */
const tailLines = 15;

export interface StartOptions {
  readonly name: string;
  /** Subcommand and flags. */
  readonly args: readonly string[];
  /** All of the environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Where its log is written. */
  readonly logFile: string;
}

export interface RunningProcess {
  readonly name: string;
  readonly pid: number;
  /** Rejects on an unexpected end of the process. */
  readonly failed: Promise<never>;
  /**
   * The first line of its log with this message, past or coming.
   * @throws DemoError if it does not come in time
   */
  logged(message: string): Promise<Readonly<Record<string, unknown>>>;
  /** Ends it: SIGTERM, a second SIGTERM, then SIGKILL. */
  end(): Promise<void>;
}

export function startProcess(options: StartOptions): RunningProcess {
  const { name, args, env, logFile } = options;
  mkdirSync(dirname(logFile), { recursive: true });
  const log = createWriteStream(logFile, { mode: 0o600 });
  const child = spawn(process.execPath, [program, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const tail: string[] = [];
  const lines = new Map<string, Readonly<Record<string, unknown>>>();
  const waiting = new Map<string, (line: Readonly<Record<string, unknown>>) => void>();
  const failed = Promise.withResolvers<never>();
  let ending = false;

  const kill = (): void => void child.kill('SIGKILL');
  process.on('exit', kill);
  const closed = once(child, 'close').finally(() => {
    process.off('exit', kill);
    log.end();
  });
  closed.then(
    ([code, signal]) => {
      if (!ending) failed.reject(failure(`ended too early (${String(signal ?? `exit code ${code}`)})`));
    },
    (error: unknown) => failed.reject(failure(String(error))),
  );
  // A caller may wait for it, and need not.
  failed.promise.catch(() => undefined);

  createInterface({ input: child.stderr }).on('line', (text) => {
    log.write(`${text}\n`);
    tail.push(text);
    if (tail.length > tailLines) tail.shift();
    const line = parseLine(text);
    const message = line?.['msg'];
    if (line === undefined || typeof message !== 'string' || lines.has(message)) return;
    lines.set(message, line);
    waiting.get(message)?.(line);
  });

  function failure(what: string): DemoError {
    return new DemoError(`${name} ${what}; the end of its log:\n  ${tail.join('\n  ') || '(nothing)'}`);
  }

  return {
    name,
    pid: child.pid ?? 0,
    failed: failed.promise,
    logged: async (message) => {
      const known = lines.get(message);
      if (known) return known;
      const { promise, resolve } = Promise.withResolvers<Readonly<Record<string, unknown>>>();
      waiting.set(message, resolve);
      const timer = new AbortController();
      const late = pause(startTimeoutMs, undefined, { signal: timer.signal }).then(() => {
        throw failure(`did not say "${message}" within ${startTimeoutMs} ms`);
      });
      try {
        return await Promise.race([promise, failed.promise, late]);
      } finally {
        timer.abort();
        late.catch(() => undefined);
      }
    },
    end: async () => {
      ending = true;
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
      child.kill('SIGTERM');
      if (await within(closed, politeMs)) return;
      child.kill('SIGTERM');
      if (await within(closed, secondSignalMs)) return;
      child.kill('SIGKILL');
      await closed;
    },
  };
}

async function within(done: Promise<unknown>, ms: number): Promise<boolean> {
  const timer = new AbortController();
  const late = pause(ms, false, { signal: timer.signal }).catch(() => false);
  const first = await Promise.race([done.then(() => true), late]);
  timer.abort();
  return first;
}

function parseLine(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const line: unknown = JSON.parse(text);
    return typeof line === 'object' && line !== null ? (line as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
