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
  const sorted = fuzzed.toSorted((a, b) => (a.target < b.target ? -1 : 1));
  const total = sorted.reduce((sum, { inputs }) => sum + inputs, 0);
  const findings = sorted.reduce((sum, each) => sum + each.findings.length, 0);
  const rows = sorted.map(({ target, inputs, memoryMb, findings: found }) => {
    return `| ${target} | ${inputs.toLocaleString('en')} | ${found.length} | ${memoryMb || ''} |`;
  });
  return `<!-- Written by \`npm run fuzz -- --write\`. -->

# Fuzzing

\`npm run fuzz\` feeds generated inputs to every parser of external data, and to a running webhook and agent over TLS. Inputs are
valid examples with damage: edited JSON trees, edited lines, inserted and repeated words, and noise.

Rules for a parser:

- It returns a result or one of its own typed errors.
- It takes at most 2 s of a processor for one input.
- Its result and its messages are bounded by the size of the input.
- What it reads is the same when it is written and read again, if archwright also writes it.

Rules for a process:

- It gives no status of 500 or more that its API does not document.
- Its resident memory (RSS) stays below the limit of the chart.
- It answers a valid request after each batch.

\`test/support/fuzz/targets.test.ts\` fails if a parser in the program is not fed by any target. Inputs that found a defect are tests of
the parser.

The last run of this kind: seed ${seed}, ${workers} worker processes, ${Math.ceil(seconds / 60)} minutes,
**${total.toLocaleString('en')} inputs, ${findings} findings**. To repeat it:
\`npm run fuzz -- --seed ${seed} --inputs ${requested}\`.

| target | inputs | findings | largest RSS, MiB |
| --- | ---: | ---: | ---: |
${rows.join('\n')}
`;
}
