/** The page with the figures of a run: docs/internals/fuzzing.md. */
import type { Fuzzed } from './pool.ts';

export interface Run {
  /** As requested; shares are rounded up to whole batches. */
  readonly inputs: number;
  readonly seed: number;
  readonly workers: number;
  readonly seconds: number;
  readonly fuzzed: readonly Fuzzed[];
}

export function pageOf({ inputs: requested, seed, workers, seconds, fuzzed }: Run): string {
  const total = fuzzed.reduce((sum, { inputs }) => sum + inputs, 0);
  const findings = fuzzed.reduce((sum, each) => sum + each.findings.length, 0);
  const memory = Math.max(0, ...fuzzed.map(({ memoryMb }) => memoryMb));
  return `<!-- Written by \`npm run fuzz -- --write\`. -->

# Fuzzing

\`npm run fuzz\` feeds generated inputs (valid examples with damage) to every parser of external data, and to a running webhook and agent over TLS.

- A parser must return a result or one of its own typed errors within 2 s of CPU time. The size of the input bounds result and messages. If archwright
  also writes the format, it must read back the same value.
- A process must return no undocumented status of 500 or more, stay below the chart's memory limit, and answer a valid request after each batch.

\`test/support/fuzz/parsers.test.ts\` fails if a parser has no target.

The last run: ${fuzzed.length} targets, seed ${seed}, ${workers} worker processes, ${Math.ceil(seconds / 60)} minutes, **${total.toLocaleString('en')} inputs,
${findings} findings**, at most ${memory} MiB resident. To repeat it: \`npm run fuzz -- --seed ${seed} --inputs ${requested}\`.
`;
}
