import t from 'tap';
import { describeFinding } from '../../scripts/fuzz/main.ts';
import { defaultLimits, run, type Fuzzed, type Limits } from '../../scripts/fuzz/pool.ts';
import { like } from '../support/like.ts';

const bad = new URL('fuzz-targets.ts', import.meta.url).href;

/** Runs the targets one after the other in one process. */
function fuzzAll(targets: string[], seed: number, inputs: number, more?: Partial<Limits>) {
  const shares = targets.map((target) => ({ target, inputs }));
  return run({ shares, seed, workers: 1, limits: { ...defaultLimits, batch: 50, ...more }, module: bad });
}

async function fuzz(...[target, ...more]: [string, number, number, Partial<Limits>?]): Promise<Fuzzed> {
  const [fuzzed] = await fuzzAll([target], ...more);
  if (!fuzzed) throw new Error('no result');
  return fuzzed;
}

t.test('a correct target gets its share of the inputs', async (t) => {
  for (const fuzzed of await fuzzAll(['good', 'refusing'], 1, 120))
    like(t, fuzzed, { inputs: 120, findings: [] }, fuzzed.target);
});

t.test('an unexpected error is reported with the smallest input and the seed of its batch', async (t) => {
  const [finding] = (await fuzz('crashing', 5, 60_000)).findings;
  like(t, finding, { target: 'crashing', message: /unexpected error: TypeError: b was not expected/ });
  t.match(finding?.input, /^Buffer\.from\(.*(?:b|62)/);
  const again = await fuzz('crashing', finding?.seed ?? 0, 50);
  t.equal(again.findings[0]?.input, finding?.input, 'it is found again at once');
  t.match(
    finding && describeFinding(finding),
    /\n {2}input: Buffer.*\n {2}again: npm run fuzz -- --inputs 1 --seed \d+ "crashing"\n$/,
  );
  like(t, (await fuzz('rejecting', 1, 1)).findings, [{ message: /RangeError: later/ }]);
});

t.test('a large result, a long message and a hanging process are reported', async (t) => {
  like(t, await fuzzAll(['growing', 'verbose', 'silent'], 1, 50), [
    { findings: [{ message: /characters of output for \d+ bytes/ }] },
    { findings: [{ message: /a message of \d+ characters/ }] },
    { inputs: 50, findings: [{ message: /no answer/ }] },
  ]);
});

t.test('a hang and excessive memory are reported, and the next target gets a new process', async (t) => {
  const hanging = await fuzz('hanging', 1, 1, { batchMs: 3000 });
  like(t, hanging.findings, [
    { target: 'hanging', seed: 1, message: /a batch of 50 inputs did not end within 3000 ms/ },
  ]);
  const [hoarding, good] = await fuzzAll(['hoarding', 'good'], 1, 50, { memoryMb: 64 });
  like(t, hoarding?.findings, [{ message: /the process ended with .*ran out of memory/ }]);
  like(t, good, { inputs: 50, findings: [] });
});
