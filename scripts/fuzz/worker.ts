/**
 * Feeds one target for some seconds, batch after batch, in a process of its own: one that hangs or eats all memory can be
 * ended, and told.
 */
import { check } from 'fast-check';
import { FuzzFinding, property, type FuzzTarget } from '../../test/support/fuzz/target.ts';

export interface Job {
  /** URL of a module that exports `targets`. */
  readonly module: string;
  readonly target: string;
  /** Of the first batch; each batch after it has the next. */
  readonly seed: number;
  readonly forMs: number;
  readonly batch: number;
}

/** Told after each batch. */
export interface Progress {
  /** Inputs since the last one. */
  readonly runs: number;
  /** Seed of the batch that comes next. */
  readonly nextSeed: number;
  readonly finding?: Finding;
}

export interface Finding {
  readonly target: string;
  readonly seed: number;
  readonly message: string;
  /** The smallest input that was found, as a literal of JavaScript. */
  readonly input?: string;
}

if (import.meta.main) {
  await run(JSON.parse(process.argv[2] ?? '') as Job, (progress) => process.send?.(progress));
  process.disconnect();
  process.exitCode = 0;
}

async function run(job: Job, tell: (progress: Progress) => void): Promise<void> {
  const { targets } = (await import(job.module)) as { targets: readonly FuzzTarget[] };
  const target = targets.find(({ name }) => name === job.target);
  if (!target) throw new TypeError(`no target ${job.target}`);
  const end = performance.now() + job.forMs;
  let { seed } = job;
  tell({ runs: 0, nextSeed: seed });
  do {
    const { numRuns, failed, counterexample, errorInstance } = await check(property(target), {
      seed,
      numRuns: job.batch,
    });
    const finding = failed ? describe(target.name, seed, counterexample?.[0], errorInstance) : undefined;
    seed += 1;
    tell({ runs: numRuns, nextSeed: seed, ...(finding && { finding }) });
    if (finding) return;
  } while (performance.now() < end);
}

function describe(target: string, seed: number, input: Buffer | undefined, error: unknown): Finding {
  const message = error instanceof FuzzFinding ? error.message : String(error);
  return { target, seed, message, ...(input && { input: literal(input) }) };
}

/** Text where it is text, else bytes. */
function literal(input: Buffer): string {
  const text = input.toString('utf8');
  return Buffer.from(text).equals(input)
    ? `Buffer.from(${JSON.stringify(text)})`
    : `Buffer.from('${input.toString('hex')}', 'hex')`;
}
