import t from 'tap';
import { createFactsMetrics } from '../../../src/images/memory/metrics.ts';
import { compileOverrides, noOverrides, type Overrides } from '../../../src/images/sources/overrides.ts';
import { defaultFreshness } from '../../../src/images/memory/freshness.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import {
  bench,
  day,
  digestOf,
  facts,
  failure,
  clockOfFacts,
  hour,
  minute,
  question,
  settled,
  taught,
} from '../support.ts';

const nginx = question('nginx:1.25');
const always = question('nginx:1.25', { pullPolicy: 'Always' });
const signal = new AbortController().signal;

t.test('nothing is known at first', async (t) => {
  const { memory, inspector } = bench();
  t.equal(memory.recall(nginx), undefined);
  t.equal(memory.lastKnown(nginx), undefined);
  t.equal(inspector.asked.length, 0, 'recall does not ask');
  t.same([...memory.shared()], []);
});

t.test('what was learned is recalled, for every spelling of the image', async (t) => {
  const { memory, inspector, teach } = bench();
  const answer = facts('nginx:1.25');
  t.same(await teach(nginx, answer), answer, 'who asked gets the inspector’s answer');
  for (const image of ['nginx:1.25', 'docker.io/nginx:1.25', 'index.docker.io/library/nginx:1.25']) {
    const recalled = memory.recall(question(image));
    t.same(recalled, { ...answer, image, source: 'memory' });
    t.equal(memory.recall(question(image)), recalled, 'a warm recall gives the same object');
  }
  t.equal(memory.recall(question('nginx:1.26')), undefined);
  t.equal(memory.recall(question('nginx')), undefined);
  t.equal(memory.recall(question('ghcr.io/library/nginx:1.25')), undefined);
  t.equal(inspector.asked.length, 1);
  t.equal(memory.size, 1);
});

t.test('a tag that is due answers and is confirmed behind the answer', async (t) => {
  const { memory, inspector, time } = await taught(nginx);
  await time.advance(15 * minute - 1);
  memory.recall(nginx);
  t.equal(inspector.asked.length, 1, 'still fresh');
  await time.advance(1);
  const due = memory.recall(nginx);
  t.match(due, { stale: false, source: 'memory', digest: digestOf('nginx:1.25') });
  memory.recall(nginx);
  memory.recall(question('docker.io/nginx:1.25'));
  t.equal(inspector.asked.length, 2, 'one revalidation at a time');
  const { options } = inspector.last();
  t.match(options.known, { image: 'nginx:1.25', digest: digestOf('nginx:1.25') });
  t.same(inspector.last().question.pullCredentials, []);

  await inspector.last().answer(facts('nginx:1.25'));
  const confirmed = memory.recall(nginx);
  t.equal(confirmed?.freshUntil, '2026-11-21T12:30:00.000Z');
  t.equal(inspector.asked.length, 2, 'fresh again');
});

t.test('a revalidation that finds another digest replaces the platforms', async (t) => {
  const { memory, inspector, time } = await taught(nginx);
  await time.advance(hour);
  memory.recall(nginx);
  const platforms = [{ os: 'linux', architecture: 's390x' }];
  await inspector.last().answer(facts('nginx:1.25', { digest: digestOf('new'), platforms }));
  t.match(memory.recall(nginx), { digest: digestOf('new'), platforms });
  t.equal(memory.size, 1);
});

t.test('a revalidation that fails leaves facts, marked stale, and backs off', async (t) => {
  const { memory, inspector, time } = await taught(nginx);
  await time.advance(hour);
  t.equal(memory.recall(nginx)?.stale, false);
  await inspector.last().answer(failure('nginx:1.25', 'unavailable'));
  t.match(memory.recall(nginx), { stale: true, digest: digestOf('nginx:1.25') });
  t.equal(memory.recall(nginx)?.error, undefined);
  t.equal(inspector.asked.length, 2);
  await time.advance(1000);
  memory.recall(nginx);
  t.equal(inspector.asked.length, 3, 'tried again after the pause');
  await inspector.last().answer(failure('nginx:1.25', 'unavailable'));
  await time.advance(1999);
  memory.recall(nginx);
  t.equal(inspector.asked.length, 3, 'the pause has doubled');
  await time.advance(1);
  memory.recall(nginx);
  await inspector.last().answer(facts('nginx:1.25'));
  t.equal(memory.recall(nginx)?.stale, false);
});

for (const code of ['unauthorized', 'forbidden', 'rate-limited', 'timeout', 'too-large'] as const) {
  t.test(`expired facts answer while asking fails with ${code}`, async (t) => {
    const { memory, inspector, time, teach } = await taught(nginx);
    await time.advance(8 * day);
    t.equal(memory.recall(nginx), undefined, 'somebody must be asked');
    t.match(memory.lastKnown(nginx), { stale: true, digest: digestOf('nginx:1.25') });
    const stale = { stale: true, digest: digestOf('nginx:1.25'), error: undefined };
    t.match(await teach(nginx, failure('nginx:1.25', code)), stale);
    t.match(memory.recall(nginx), stale);
    await time.advance(hour);
    t.equal(memory.recall(nginx), undefined, 'until it may be asked again');
    await teach(nginx, facts('nginx:1.25'));
    t.equal(memory.recall(nginx)?.stale, false);
    t.equal(inspector.asked.length, 3);
  });
}

t.test('an image that is gone ends its facts', async (t) => {
  const { memory, time, revalidate } = await taught(nginx);
  await revalidate(nginx, failure('nginx:1.25', 'not-found'));
  t.match(memory.recall(nginx), { platforms: [], error: { code: 'not-found' } });
  t.equal(memory.lastKnown(nginx), undefined);
  t.equal(memory.size, 0);
  await time.advance(30_000);
  t.equal(memory.recall(nginx), undefined);
});

t.test('pull policy Always is asked each time, or after its own cache time', async (t) => {
  const plain = bench();
  await plain.teach(always, facts('nginx:1.25'));
  t.equal(plain.memory.recall(always), undefined);
  t.ok(plain.memory.recall(nginx), 'others are answered from what it learned');
  t.equal(plain.memory.recall(always), undefined, 'also when an answer is ready for others');
  await plain.teach(always, facts('nginx:1.25'));
  t.equal(plain.inspector.last().options.known?.digest, digestOf('nginx:1.25'), 'by digest comparison');
  t.equal(plain.inspector.asked.length, 2);

  const cached = bench({ freshness: { ...defaultFreshness, pullAlwaysCacheTimeMs: minute } });
  await cached.teach(always, facts('nginx:1.25'));
  await cached.time.advance(minute - 1);
  t.ok(cached.memory.recall(always));
  await cached.time.advance(1);
  t.equal(cached.memory.recall(always), undefined);
  t.ok(cached.memory.recall(question('nginx:1.25', { pullPolicy: 'Never' })));
});

t.test('pull policy Always falls back on old facts while asking fails', async (t) => {
  const { memory, time, teach } = await taught(always);
  t.match(await teach(always, failure('nginx:1.25', 'unavailable')), { stale: true, platforms: [{}, {}] });
  t.match(memory.recall(always), { stale: true });
  t.match(memory.recall(nginx), { stale: false }, 'they are fresh enough for others');
  await time.advance(1000);
  t.equal(memory.recall(always), undefined);
});

t.test('a digest is asked for once, for every pull policy', async (t) => {
  const digest = digestOf('content');
  const { memory, inspector, time } = await taught(question(`nginx@${digest}`), facts(`nginx@${digest}`));
  await time.advance(300 * day);
  for (const image of [`nginx@${digest}`, `nginx:1.25@${digest}`, `docker.io/library/nginx@${digest}`]) {
    t.match(memory.recall(question(image, { pullPolicy: 'Always' })), { image, digest, stale: false });
  }
  t.equal(inspector.asked.length, 1);
});

t.test('the digest that a tag stands for is known too, in the same repository', async (t) => {
  const { memory, time, teach } = await taught(nginx);
  const byDigest = question(`nginx@${digestOf('nginx:1.25')}`, { pullPolicy: 'Always' });
  t.match(memory.recall(byDigest), { image: byDigest.image, freshUntil: '2027-11-21T12:00:00.000Z' });
  t.equal(memory.recall(question(`ghcr.io/nginx@${digestOf('nginx:1.25')}`)), undefined);
  t.equal(memory.recall(question(`nginxinc/nginx@${digestOf('nginx:1.25')}`)), undefined);
  await time.advance(30 * day);
  t.ok(memory.recall(byDigest), 'also when the tag has expired');
  await teach(nginx, facts('nginx:1.25', { digest: digestOf('moved') }));
  t.equal(memory.recall(byDigest), undefined, 'forgotten when the tag stands for another');
  t.ok(memory.recall(question(`nginx@${digestOf('moved')}`)));
});

t.test('an artifact is knowledge, not a failure', async (t) => {
  const error = { code: 'not-an-image', message: 'a chart' } as const;
  const { memory, inspector, time } = await taught(nginx, facts('nginx:1.25', { platforms: [], error }));
  t.match(memory.recall(nginx), { platforms: [], error, digest: digestOf('nginx:1.25') });
  await time.advance(15 * minute);
  t.match(memory.recall(nginx), { error });
  t.match(inspector.last().options.known, { error });
  t.equal([...memory.shared()].length, 1);
  t.match(
    await bench().teach(nginx, { ...failure('nginx:1.25', 'not-an-image') }),
    { error: { code: 'not-an-image' } },
    'without a digest it is a failure',
  );
});

t.test('overrides come before everything', async (t) => {
  const time = clockOfFacts();
  const overrides = compileOverrides([{ match: 'nginx', architectures: ['arm64'] }], time);
  const { memory, inspector } = bench({ overrides });
  t.match(memory.recall(always), { source: 'override', image: 'nginx:1.25', error: undefined });
  t.match(memory.lastKnown(nginx), { source: 'override', stale: false });
  t.match(await memory.lookup(always, { signal }), { source: 'override' });
  t.equal(memory.recall(question('redis')), undefined);
  t.equal(inspector.asked.length, 0);
  t.same([...memory.shared()], [], 'they are no knowledge to tell');
});

t.test('the wall clock may jump: only dates change', async (t) => {
  const { memory, inspector, time } = await taught(nginx);
  for (const jump of [-400 * day, 800 * day]) {
    time.setWall(time.now() + jump);
    t.equal(memory.recall(nginx)?.stale, false);
    t.equal(inspector.asked.length, 1);
  }
  await time.advance(minute);
  t.equal(memory.recall(nginx)?.freshUntil, new Date(time.now() + 14 * minute).toISOString());
});

t.test('an answer with another digest than asked for is not kept', async (t) => {
  const { memory, lines, teach } = bench();
  const asked = question(`nginx@${digestOf('content')}`);
  await teach(asked, facts('nginx', { digest: digestOf('something else') }));
  t.equal(memory.recall(asked), undefined);
  t.match(lines, [{ msg: 'facts of another digest than requested are ignored' }]);
});

t.test('an override that is added counts at once, also for an image whose answer is ready', async (t) => {
  const time = clockOfFacts();
  let current = noOverrides;
  const overrides: Overrides = {
    find: (image, reference) => current.find(image, reference),
    get version() {
      return current.version;
    },
  };
  const { memory } = bench({ overrides });
  memory.learn(facts('nginx:1.25'));
  t.match(memory.recall(nginx), { source: 'memory' });
  t.match(memory.recall(nginx), { source: 'memory' });
  current = compileOverrides([{ match: 'nginx', architectures: ['arm64'] }], time);
  t.match(memory.recall(nginx), { source: 'override' });
  current = noOverrides;
  t.match(memory.recall(nginx), { source: 'memory' });
});

t.test('an override that an agent has and we have not is passed on and not kept', async (t) => {
  const { memory, teach } = bench();
  t.match(await teach(nginx, facts('nginx:1.25', { source: 'override' })), { source: 'override' });
  t.equal(memory.recall(nginx), undefined);
});

t.test('every look is counted by what it gave', async (t) => {
  const metrics = createMetrics();
  const { memory, inspector, teach, revalidate } = bench({ metrics: createFactsMetrics(metrics) });
  const counts = async (): Promise<string[]> =>
    (await metrics.render())
      .split('\n')
      .filter((line) => line.startsWith('archwright_facts_') && !/ 0$|_bytes/.test(line))
      .map((line) => line.replace('archwright_facts_', ''));
  memory.recall(nginx);
  await teach(nginx, facts('nginx:1.25'));
  memory.recall(nginx);
  memory.recall(nginx);
  await revalidate(nginx, failure('nginx:1.25', 'timeout'));
  memory.recall(nginx);
  const both = [memory.lookup(question('b'), { signal }), memory.lookup(question('b'), { signal })];
  await settled();
  t.ok((await counts()).includes('inspections_in_flight 1'));
  await inspector.last().answer(failure('b', 'not-found'));
  await Promise.all(both);
  memory.recall(question('b'));
  t.same(await counts(), [
    'entries 1',
    'recalls_total{result="fresh"} 2',
    'recalls_total{result="due"} 1',
    'recalls_total{result="stale"} 1',
    'recalls_total{result="failure"} 1',
    'recalls_total{result="miss"} 1',
    'failures_total{code="not-found"} 1',
    'failures_total{code="timeout"} 1',
    'inspections_total{cause="request"} 2',
    'inspections_total{cause="revalidation"} 1',
    'inspections_total{cause="joined"} 1',
  ]);
});
