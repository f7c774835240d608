/**
 * `npm run fuzz`: generated input for every parser of what others write, for `FUZZ_SECONDS` (60) in all, beginning with `FUZZ_SEED`
 * (drawn where it is not set). Names of targets behind `--` choose among them. Prints the number of inputs for each target; for what it
 * finds the seed, the message and the smallest input, and ends with exit code 1.
 */
import { fork } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { targets } from '../../test/support/fuzz/targets.ts';
import type { Finding, Job, Progress } from './worker.ts';

export interface Limits {
  /** A batch without an end by then hangs. */
  readonly batchMs: number;
  /** Of the heap; what is generated and parsed takes some dozens of MiB. */
  readonly memoryMb: number;
  /** Inputs of a batch. */
  readonly batch: number;
}

export const defaultLimits: Limits = { batchMs: 60_000, memoryMb: 512, batch: 200 };

export interface Fuzzed {
  readonly runs: number;
  readonly finding: Finding | undefined;
}

const worker = fileURLToPath(new URL('worker.ts', import.meta.url));
const targetsModule = new URL('../../test/support/fuzz/targets.ts', import.meta.url).href;

/**
 * Feeds one target.
 * @param forMs how long; the batch under way then is the last
 * @param module that exports it
 */
export async function fuzz(
  target: string,
  seed: number,
  forMs: number,
  limits: Limits = defaultLimits,
  module: string = targetsModule,
): Promise<Fuzzed> {
  const job: Job = { module, target, seed, forMs, batch: limits.batch };
  const child = fork(worker, [JSON.stringify(job)], {
    execArgv: [`--max-old-space-size=${limits.memoryMb}`],
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  let runs = 0;
  let batchSeed = seed;
  return new Promise((resolve) => {
    let finding: Finding | undefined;
    function late(): void {
      const message = `no end of a batch of ${limits.batch} inputs after ${limits.batchMs} ms`;
      finding = { target, seed: batchSeed, message };
      child.kill('SIGKILL');
    }
    let timer = setTimeout(late, limits.batchMs);
    child.on('message', (message) => {
      const progress = message as Progress;
      clearTimeout(timer);
      timer = setTimeout(late, limits.batchMs);
      runs += progress.runs;
      batchSeed = progress.nextSeed;
      finding = progress.finding;
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      const crash = `the process ended with ${signal ?? code}, for want of memory (${limits.memoryMb} MiB) or worse`;
      if (code !== 0) finding ??= { target, seed: batchSeed, message: crash };
      resolve({ runs, finding });
    });
  });
}

/** Prints a finding so that it can be tried again. */
export function describeFinding({ target, seed, message, input }: Finding): string {
  const again = `FUZZ_SEED=${seed} npm run fuzz -- ${JSON.stringify(target)}`;
  return `${target}: ${message}\n${input === undefined ? '' : `  input: ${input}\n`}  again: ${again}\n`;
}

interface Settings {
  readonly seconds: number;
  readonly seed: number;
  readonly names: readonly string[];
}

/** @throws TypeError where a variable or a name is wrong */
export function settingsFrom(env: NodeJS.ProcessEnv, names: readonly string[]): Settings {
  const seconds = Number(env['FUZZ_SECONDS'] ?? 60);
  const seed = Number(env['FUZZ_SEED'] ?? randomInt(2 ** 31 - 1));
  if (!(seconds > 0)) throw new TypeError('FUZZ_SECONDS must be a number of seconds');
  if (!Number.isInteger(seed)) throw new TypeError('FUZZ_SEED must be an integer');
  const known = targets.map(({ name }) => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new TypeError(`no target ${unknown}; there are ${known.join(', ')}`);
  return { seconds, seed, names: names.length > 0 ? names : known };
}

async function main(): Promise<void> {
  const { seconds, seed, names } = settingsFrom(process.env, process.argv.slice(2));
  process.stdout.write(`seed ${seed}, ${seconds} s\n`);
  const findings: Finding[] = [];
  for (const name of names) {
    const { runs, finding } = await fuzz(name, seed, (seconds * 1000) / names.length);
    if (finding) findings.push(finding);
    process.stdout.write(
      `${name.padEnd(26)} ${String(runs).padStart(9)} inputs${finding ? '  FOUND' : ''}\n`,
    );
  }
  for (const finding of findings) process.stdout.write(`\n${describeFinding(finding)}`);
  if (findings.length > 0) process.exitCode = 1;
}

if (import.meta.main) await main();
