import { spawnSync } from 'node:child_process';
import t from 'tap';
import { defaultLimits, describeFinding, fuzz, settingsFrom } from '../../scripts/fuzz/main.ts';
import { childEnv } from '../cmd/world.ts';

const bad = new URL('fuzz-targets.ts', import.meta.url).href;
const limits = { ...defaultLimits, batch: 50 };

t.test('a target that does what it should is fed until the time is over', async (t) => {
  for (const name of ['good', 'refusing']) {
    const { runs, finding } = await fuzz(name, 1, 1, limits, bad);
    t.equal(finding, undefined, name);
    t.equal(runs, 50);
  }
});

t.test('an unexpected error is found, with the smallest input and the seed of its batch', async (t) => {
  const { finding } = await fuzz('crashing', 5, 60_000, limits, bad);
  t.match(finding, { target: 'crashing', message: /nobody expects: TypeError: b was not expected/ });
  t.match(finding?.input, /^Buffer\.from\(.*(?:b|62)/);
  const again = await fuzz('crashing', finding?.seed ?? 0, 1, limits, bad);
  t.equal(again.finding?.input, finding?.input, 'it is found again at once');
  t.match(
    finding && describeFinding(finding),
    /\n {2}input: Buffer.*\n {2}again: FUZZ_SEED=\d+ npm run fuzz -- "crashing"\n$/,
  );
  t.match((await fuzz('rejecting', 1, 1, limits, bad)).finding, { message: /RangeError: later/ });
});

t.test('a hang and a hunger for memory are found', async (t) => {
  const hanging = await fuzz('hanging', 1, 1, { ...limits, batchMs: 3000 }, bad);
  t.match(hanging.finding, {
    target: 'hanging',
    seed: 1,
    message: /no end of a batch of 50 inputs after 3000 ms/,
  });
  const hoarding = await fuzz('hoarding', 1, 1, { ...limits, memoryMb: 64 }, bad);
  t.match(hoarding.finding, { message: /the process ended with .*memory/ });
});

t.test('as a program', async (t) => {
  const args = ['scripts/fuzz/main.ts', 'challenges', 'dockercfg'];
  const env = { ...childEnv, FUZZ_SEED: '7', FUZZ_SECONDS: '0.01' };
  const { status, stdout } = spawnSync(process.execPath, args, { env, encoding: 'utf8' });
  t.equal(status, 0);
  t.match(stdout, /^seed 7, 0\.01 s\nchallenges +\d+ inputs\ndockercfg +\d+ inputs\n$/);
});

t.test('wrong settings', async (t) => {
  t.throws(() => settingsFrom({}, ['chalenges']), { message: /no target chalenges; there are hosts\.toml/ });
  t.throws(() => settingsFrom({ FUZZ_SECONDS: 'x' }, []), { message: /FUZZ_SECONDS must be/ });
  t.throws(() => settingsFrom({ FUZZ_SEED: 'x' }, []), { message: /FUZZ_SEED must be/ });
});
