/**
 * `npm run fuzz -- [--inputs N] [--seed S] [--workers W] [--write] [TARGET…]`: generated input for all
 * parsers of external data, a webhook and an agent. Prints each target's inputs, and each finding's seed,
 * message and smallest input; exits with 1 for a finding. The same seed and number repeat the inputs.
 */
import { randomInt } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { format, resolveConfig } from 'prettier';
import { targets } from '../../test/support/fuzz/targets.ts';
import { pageOf, type Run } from './page.ts';
import { defaultLimits, run, type Fuzzed, type Share } from './pool.ts';
import type { Finding } from './worker.ts';

/** Takes a few minutes. */
const defaultInputs = 500_000;

export interface Settings {
  readonly inputs: number;
  readonly seed: number;
  readonly workers: number;
  readonly shares: readonly Share[];
  readonly write: boolean;
}

/** @throws TypeError for an invalid flag or name */
export function settingsFrom(args: readonly string[]): Settings {
  const flag = { type: 'string' } as const;
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { inputs: flag, seed: flag, workers: flag, write: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  const known = targets.map(({ name }) => name);
  const unknown = positionals.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new TypeError(`no target ${unknown}; known targets: ${known.join(', ')}`);
  const names = positionals.length > 0 ? positionals : known;
  const inputs = whole('inputs', values.inputs) ?? defaultInputs;
  return {
    inputs,
    seed: whole('seed', values.seed) ?? randomInt(2 ** 30),
    workers: whole('workers', values.workers) ?? availableParallelism(),
    shares: sharesOf(inputs, names),
    write: values.write,
  };
}

function whole(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1)
    throw new TypeError(`--${name} must be a positive whole number`);
  return number;
}

/** Whole batches for each target, by its share; together at least `inputs`. */
function sharesOf(inputs: number, names: readonly string[]): readonly Share[] {
  const chosen = targets.filter(({ name }) => names.includes(name));
  const weights = chosen.map(({ share = 10 }) => share);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const { batch } = defaultLimits;
  const shares = chosen.map(({ name: target }, index) => {
    const wanted = (inputs * (weights[index] ?? 0)) / total;
    return { target, inputs: Math.ceil(wanted / batch) * batch };
  });
  // Slow targets first, so that workers end at about the same time.
  return shares.toSorted((a, b) => a.inputs - b.inputs);
}

/** Prints a finding with the command to repeat it. */
export function describeFinding({ target, seed, message, input }: Finding): string {
  const again = `npm run fuzz -- --inputs 1 --seed ${seed} ${JSON.stringify(target)}`;
  return `${target}: ${message}\n${input === undefined ? '' : `  input: ${input}\n`}  again: ${again}\n`;
}

function describe({ target, inputs, seconds, memoryMb, findings }: Fuzzed): string {
  const memory = memoryMb === 0 ? '' : `  at most ${memoryMb} MiB`;
  const found = findings.length === 0 ? '' : '  FOUND';
  return `${target.padEnd(32)} ${String(inputs).padStart(9)} inputs ${seconds.toFixed(0).padStart(5)} s${memory}${found}\n`;
}

async function main(): Promise<void> {
  const { inputs, seed, workers, shares, write } = settingsFrom(process.argv.slice(2));
  const started = performance.now();
  process.stdout.write(`seed ${seed}, ${workers} workers\n`);
  const done = (fuzzed: Fuzzed): void => void process.stdout.write(describe(fuzzed));
  const fuzzed = await run({ shares, seed, workers, done });
  const seconds = (performance.now() - started) / 1000;
  const total = fuzzed.reduce((sum, { inputs }) => sum + inputs, 0);
  const findings = fuzzed.flatMap((each) => each.findings);
  process.stdout.write(`${total} inputs in ${seconds.toFixed(0)} s, ${findings.length} findings\n`);
  for (const finding of findings) process.stdout.write(`\n${describeFinding(finding)}`);
  if (write) await writePage({ inputs, seed, workers, seconds, fuzzed });
  if (findings.length > 0) process.exitCode = 1;
}

const page = new URL('../../docs/internals/fuzzing.md', import.meta.url);

async function writePage(result: Run): Promise<void> {
  const options = await resolveConfig(page);
  await writeFile(page, await format(pageOf(result), { ...options, parser: 'markdown' }));
}

if (import.meta.main) await main();
