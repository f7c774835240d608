/**
 * Feeds batches of inputs to targets, in a separate process. A target that hangs or uses all memory is killed
 * and reported. Jobs arrive as messages. Each batch sends a message; that of a job's last batch is marked.
 */
import { check } from 'fast-check';
import { FuzzFinding, property, type FuzzTarget } from '../../test/support/fuzz/target.ts';

export interface Job {
  /** URL of a module that exports `targets`. */
  readonly module: string;
  readonly target: string;
  /** Of the first batch; each later batch has the next number. */
  readonly seed: number;
  readonly inputs: number;
  /** Inputs of a batch. */
  readonly batch: number;
}

/** Sent after each batch. */
export interface Progress {
  /** Inputs since the last message. */
  readonly runs: number;
  /** Seed of the batch that comes next. */
  readonly nextSeed: number;
  readonly finding?: Finding;
  /** Of a process: its largest memory so far, MiB of RSS. */
  readonly memoryMb?: number;
  readonly isLast: boolean;
}

export interface Finding {
  readonly target: string;
  readonly seed: number;
  readonly message: string;
  /** The smallest input that was found, as a JavaScript literal. */
  readonly input?: string;
}

const used = new Set<FuzzTarget>();

if (import.meta.main) {
  // In order: the next job is sent after the last message of the previous one.
  process.on('message', (job) => void run(job as Job, (progress) => process.send?.(progress)));
  process.on('disconnect', () => void end());
}

async function run(job: Job, report: (progress: Progress) => void): Promise<void> {
  const { targets } = (await import(job.module)) as { targets: readonly FuzzTarget[] };
  const target = targets.find(({ name }) => name === job.target);
  if (!target) throw new TypeError(`no target ${job.target}`);
  used.add(target);
  report({ runs: 0, nextSeed: job.seed, isLast: false });
  for (let { seed } = job, left = job.inputs; left > 0; seed += 1, left -= job.batch) {
    const progress = await runBatch(target, seed, Math.min(job.batch, left));
    const isLast = progress.finding !== undefined || left <= job.batch;
    report({ ...progress, nextSeed: seed + 1, isLast });
    if (isLast) return;
  }
}

async function runBatch(
  target: FuzzTarget,
  seed: number,
  inputs: number,
): Promise<Pick<Progress, 'runs' | 'finding' | 'memoryMb'>> {
  const result = await check(property(target), { seed, numRuns: inputs });
  const runs = result.numRuns;
  if (result.failed)
    return { runs, finding: describe(target.name, seed, result.counterexample?.[0], result.errorInstance) };
  try {
    return { runs, ...(target.check && { memoryMb: await target.check() }) };
  } catch (error) {
    return { runs, finding: describe(target.name, seed, undefined, error) };
  }
}

function describe(target: string, seed: number, input: Buffer | undefined, error: unknown): Finding {
  const message = error instanceof FuzzFinding ? error.message : String(error);
  return { target, seed, message, ...(input && { input: literal(input) }) };
}

/** As text if it is UTF-8, else as bytes. */
function literal(input: Buffer): string {
  const text = input.toString('utf8');
  return Buffer.from(text).equals(input)
    ? `Buffer.from(${JSON.stringify(text)})`
    : `Buffer.from('${input.toString('hex')}', 'hex')`;
}

async function end(): Promise<void> {
  for (const target of used) await target.close?.();
  process.exit();
}
