/** A part of archwright as a process, on free ports of loopback. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { send } from '../serving/support.ts';
import { compileCache } from './compile-cache.ts';

export type Program = Awaited<ReturnType<typeof startProgram>>;

export type Part = 'webhook' | 'agent' | 'controller';

const source = fileURLToPath(new URL('../../cmd/archwright.ts', import.meta.url));
/** Only for a process that hangs. A start takes a second, but a minute on two busy cores. */
const startLimitMs = 150_000;
const maxLogLength = 1024 * 1024;

/**
 * Resolves when it serves requests.
 * @param options.home without a user's logins
 * @param options.entry default: the sources
 * @throws Error with its log if it ends
 */
export async function startProgram(
  part: Part,
  flags: readonly string[],
  options: {
    readonly home: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly entry?: string;
  },
) {
  const { home, env, entry = source } = options;
  const listen = part === 'controller' ? [] : ['--listen', '127.0.0.1:0'];
  const args = [entry, part, ...listen, '--metrics-listen', '127.0.0.1:0', ...flags];
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env['PATH'] ?? '', HOME: home, ...compileCache, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log = (log + text).slice(0, maxLogLength)));
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  const stop = async (): Promise<void> => {
    if (hasEnded()) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  const found = (name: string): string => new RegExp(`"(?:${name})":"(https?:[^"]+)"`).exec(log)?.[1] ?? '';
  const serves = (): boolean => found('health') !== '' && (part === 'controller' || found('url|api') !== '');
  const end = performance.now() + startLimitMs;
  while (!serves()) {
    if (performance.now() > end || hasEnded()) {
      await stop();
      throw new Error(`${part} did not start: ${log}`);
    }
    await pause(20);
  }
  return {
    /** URL of the webhook's or the agent's API. */
    url: found('url|api'),
    /** Base URL of `/healthz` and `/metrics`. */
    health: found('health'),
    pid: child.pid ?? 0,
    log: () => log,
    /** The value of one of its samples, or 0 if it does not exist. */
    metric: async (sample: string): Promise<number> => {
      const { body } = await send(`${found('health')}/metrics`, { agent: false });
      const line = body.split('\n').find((one) => one.startsWith(`${sample} `));
      return line === undefined ? 0 : Number(line.split(' ').at(-1));
    },
    /** The peak resident memory of the process. @throws Error if it has ended */
    peakBytes: (): number => {
      if (hasEnded()) throw new Error(`${part} ended: ${log}`);
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
    },
    stop,
  };
}
