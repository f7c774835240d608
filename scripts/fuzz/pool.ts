/** Worker processes that share the jobs of a run. One that hangs or dies is a finding, and is replaced. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Finding, Job, Progress } from './worker.ts';

export interface Limits {
  /** A batch that takes longer counts as hanging. The slowest one took a fiftieth of this on a busy machine. */
  readonly batchMs: number;
  /** Heap of a worker; generated inputs and their results need a few dozen MiB. */
  readonly memoryMb: number;
  /** Inputs of a batch. */
  readonly batch: number;
}

export const defaultLimits: Limits = { batchMs: 120_000, memoryMb: 512, batch: 200 };

/** The inputs of one target. */
export interface Share {
  readonly target: string;
  readonly inputs: number;
}

/** The result of a run for one target. */
export interface Fuzzed extends Share {
  readonly seconds: number;
  readonly memoryMb: number;
  readonly findings: readonly Finding[];
}

export interface RunOptions {
  readonly shares: readonly Share[];
  readonly seed: number;
  readonly workers: number;
  readonly limits?: Limits;
  /** Exports `targets`. */
  readonly module?: string;
  readonly done?: (fuzzed: Fuzzed) => void;
}

const worker = fileURLToPath(new URL('worker.ts', import.meta.url));
export const targetsModule = new URL('../../test/support/fuzz/targets.ts', import.meta.url).href;

/** Feeds every target its share. The inputs depend on the seed only, not on the number of workers. */
export async function run(options: RunOptions): Promise<readonly Fuzzed[]> {
  const { shares, seed, limits = defaultLimits, module = targetsModule, done } = options;
  const waiting = shares.map(({ target, inputs }): Job => {
    return { module, target, seed, inputs, batch: limits.batch };
  });
  const results: Fuzzed[] = [];
  async function work(): Promise<void> {
    let child: ChildProcess | undefined;
    for (let job = waiting.shift(); job; job = waiting.shift()) {
      child ??= start(limits);
      const { isAlive, ...fuzzed } = await runJob(child, job, limits);
      if (!isAlive) child = undefined;
      results.push(fuzzed);
      done?.(fuzzed);
    }
    if (child === undefined) return;
    const ended = once(child, 'exit');
    child.disconnect();
    await ended;
  }
  await Promise.all(Array.from({ length: options.workers }, work));
  return results;
}

function start({ memoryMb }: Limits): ChildProcess {
  return fork(worker, [], {
    execArgv: [`--max-old-space-size=${memoryMb}`],
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
}

/** Sends one job and waits for its end. */
function runJob(child: ChildProcess, job: Job, limits: Limits): Promise<Fuzzed & { isAlive: boolean }> {
  const { target } = job;
  const startedAt = performance.now();
  let [inputs, memoryMb, batchSeed] = [0, 0, job.seed];
  return new Promise((resolve) => {
    function settle(finding: Finding | undefined, isAlive: boolean): void {
      clearTimeout(timer);
      child.off('message', received).off('exit', closed);
      const findings = finding ? [finding] : [];
      const seconds = (performance.now() - startedAt) / 1000;
      resolve({ target, inputs, seconds, memoryMb, findings, isAlive });
    }
    function late(): void {
      child.kill('SIGKILL');
      const message = `a batch of ${job.batch} inputs did not end within ${limits.batchMs} ms`;
      settle({ target, seed: batchSeed, message }, false);
    }
    function closed(code: number | null, signal: NodeJS.Signals | null): void {
      const message = `the process ended with ${signal ?? code}, probably because it ran out of memory (${limits.memoryMb} MiB)`;
      settle({ target, seed: batchSeed, message }, false);
    }
    function received(message: unknown): void {
      const progress = message as Progress;
      timer.refresh();
      inputs += progress.runs;
      memoryMb = Math.max(memoryMb, progress.memoryMb ?? 0);
      batchSeed = progress.nextSeed;
      if (progress.isLast) settle(progress.finding, true);
    }
    const timer = setTimeout(late, limits.batchMs);
    child.on('message', received).on('exit', closed);
    child.send(job);
  });
}
