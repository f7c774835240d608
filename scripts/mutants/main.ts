/**
 * `npm run mutants -- [--count N] [--seed S] [PATH…]`: changes one operator, literal or statement at a time in
 * a copy of the tree, and runs the tests of its room. `npm test` must pass before. A survivor is a change that no
 * test of the room notices.
 * PATH limits the sample, for example to `src/placement` or `src/placement/decide.ts:24`. A seed draws the same
 * mutants again, also if other lines have changed.
 */
import { createHash, randomInt } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { mutantsOf, type Mutant } from './mutate.ts';
import { copyTree, removeTree, runMutant } from './run.ts';
import { root } from './tests.ts';

/** Takes about an hour. */
const defaultCount = 300;
/** The tests of most rooms take less than a minute. */
const limitMs = 300_000;

interface Drawn extends Mutant {
  readonly path: string;
}

const show = ({ path, line, before, after }: Drawn): string =>
  `${path}:${line}  ${short(before)} → ${after === '' ? '(nothing)' : after}`;

function short(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > 70 ? `${line.slice(0, 69)}…` : line;
}

/** A sample in random order that depends on seed, file and line only. */
export function draw(count: number, seed: number, paths: readonly string[]): Drawn[] {
  const chosen = paths.length === 0 ? ['src', 'daemon'] : paths;
  const files = globSync('{src,daemon,cmd}/**/*.ts', { cwd: root }).filter((path) =>
    chosen.some((each) => path.startsWith(`${each}/`) || path === each.replace(/:\d+$/, '')),
  );
  const all = files.flatMap((path) => {
    const text = readFileSync(`${root}${path}`, 'utf8');
    const lines = text.split('\n');
    const numbers = chosen.filter((each) => each.startsWith(`${path}:`));
    return mutantsOf(text)
      .filter(({ line }) => numbers.length === 0 || numbers.includes(`${path}:${line}`))
      .map((mutant) => {
        const column = mutant.start - text.lastIndexOf('\n', mutant.start - 1);
        const place = [seed, path, lines[mutant.line - 1], column, mutant.after].join('\n');
        return { ...mutant, path, rank: createHash('sha256').update(place).digest('hex') };
      });
  });
  return all.toSorted((a, b) => (a.rank < b.rank ? -1 : 1)).slice(0, count);
}

const print = (text: string): void => void process.stdout.write(`${text}\n`);

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { count: { type: 'string' }, seed: { type: 'string' } },
    allowPositionals: true,
  });
  const seed = Number(values.seed ?? randomInt(2 ** 30));
  const mutants = draw(Number(values.count ?? defaultCount), seed, positionals);
  print(`seed ${seed}, ${mutants.length} mutants`);
  const copy = await copyTree();
  try {
    const survivors = await runAll(copy, mutants);
    const killed = mutants.length - survivors.length;
    print(`\n${killed} of ${mutants.length} killed (${((100 * killed) / mutants.length).toFixed(1)} %)`);
    for (const each of survivors) print(`survived  ${show(each)}`);
  } finally {
    await removeTree(copy);
  }
}

/** @returns the survivors */
async function runAll(copy: string, mutants: readonly Drawn[]): Promise<Drawn[]> {
  const survivors: Drawn[] = [];
  for (const mutant of mutants) {
    const { result, ms } = await runMutant(copy, mutant.path, mutant, limitMs);
    const name = result === 'passed' ? 'survived' : result === 'failed' ? 'killed' : result;
    if (result === 'passed') survivors.push(mutant);
    print(`${name.padEnd(9)} ${(ms / 1000).toFixed(1).padStart(5)} s  ${show(mutant)}`);
  }
  return survivors;
}

if (import.meta.main) await main();
