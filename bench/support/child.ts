/** A measured server, in a separate process because of its CPU time. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** Messages of a measured server: its address, and its CPU time on request. */
export type ChildMessage =
  { readonly url: string } | { readonly cpuMicros: number; readonly residentBytes: number };

export interface MeasuredServer {
  readonly url: string;
  /** CPU time of the process so far, user and system, microseconds; and its resident memory. */
  usage(): Promise<{ cpuMicros: number; residentBytes: number }>;
  stop(): Promise<void>;
}

const startLimitMs = 20_000;

/**
 * Starts a server that calls `serveMeasured`.
 * @param file the module to run
 * @param argument handed to it as JSON
 */
export async function startMeasured(file: URL, argument: unknown): Promise<MeasuredServer> {
  const child = fork(file, [JSON.stringify(argument)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const started = await nextMessage(child, startLimitMs);
  if (!('url' in started)) throw new Error(`${file.pathname} sent no address`);
  return {
    url: started.url,
    usage: async () => {
      child.send('usage');
      const usage = await nextMessage(child, startLimitMs);
      if (!('cpuMicros' in usage)) throw new Error(`${file.pathname} sent no usage`);
      return usage;
    },
    stop: async () => {
      const gone = once(child, 'exit');
      child.disconnect();
      await gone;
    },
  };
}

/** In the child: sends its address, responds to messages, and ends when the parent disconnects. */
export function serveMeasured(url: string): void {
  process.on('message', () => {
    const { user, system } = process.cpuUsage();
    process.send?.({
      cpuMicros: user + system,
      residentBytes: process.memoryUsage.rss(),
    } satisfies ChildMessage);
  });
  process.on('disconnect', () => process.exit(0));
  process.send?.({ url } satisfies ChildMessage);
}

function nextMessage(child: ChildProcess, limitMs: number): Promise<ChildMessage> {
  const done = new AbortController();
  const signal = AbortSignal.any([done.signal, AbortSignal.timeout(limitMs)]);
  return new Promise<ChildMessage>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('the measured server sends no message')), {
      once: true,
    });
    child.once('message', (message) => resolve(message as ChildMessage));
    once(child, 'exit', { signal }).then(
      () => reject(new Error('the measured server ended')),
      () => undefined,
    );
  }).finally(() => done.abort());
}
