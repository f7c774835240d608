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
  requestFor,
  settled,
  benchWith,
} from '../support.ts';
import { neverAborted } from '../../support/never-aborted.ts';

const nginx = requestFor('nginx:1.25');
const always = requestFor('nginx:1.25', { pullPolicy: 'Always' });

t.test('a new memory is empty', async (t) => {
  const { memory, inspector } = bench();
  t.equal(memory.recall(nginx), undefined);
  t.equal(memory.lastKnown(nginx), undefined);
  t.equal(inspector.lookups.length, 0, 'recall sends no request');
  t.same([...memory.shared()], []);
});

t.test('facts are recalled for every spelling of the image', async (t) => {
  const { memory, inspector, lookUp } = bench();
  const answer = facts('nginx:1.25');
  t.same(await lookUp(nginx, answer), answer, 'the lookup returns the answer of the source');
  for (const image of ['nginx:1.25', 'docker.io/nginx:1.25', 'index.docker.io/library/nginx:1.25']) {
    const recalled = memory.recall(requestFor(image));
    t.same(recalled, { ...answer, image, source: 'memory' });
    t.equal(memory.recall(requestFor(image)), recalled, 'a warm recall returns the same object');
  }
  t.equal(memory.recall(requestFor('nginx:1.26')), undefined);
  t.equal(memory.recall(requestFor('nginx')), undefined);
  t.equal(memory.recall(requestFor('ghcr.io/library/nginx:1.25')), undefined);
  t.equal(inspector.lookups.length, 1);
  t.equal(memory.size, 1);
});

t.test('a due tag is answered from memory and revalidated in the background', async (t) => {
  const { memory, inspector, time } = await benchWith(nginx);
  await time.advance(15 * minute - 1);
  memory.recall(nginx);
  t.equal(inspector.lookups.length, 1, 'still fresh');
  await time.advance(1);
  const due = memory.recall(nginx);
  t.match(due, { stale: false, source: 'memory', digest: digestOf('nginx:1.25') });
  memory.recall(nginx);
  memory.recall(requestFor('docker.io/nginx:1.25'));
  t.equal(inspector.lookups.length, 2, 'one revalidation at a time');
  const { options } = inspector.last();
  t.match(options.known, { image: 'nginx:1.25', digest: digestOf('nginx:1.25') });
  t.same(inspector.last().request.pullCredentials, []);

  await inspector.last().resolve(facts('nginx:1.25'));
  const confirmed = memory.recall(nginx);
  t.equal(confirmed?.freshUntil, '2026-11-21T12:30:00.000Z');
  t.equal(inspector.lookups.length, 2, 'fresh again');
});

t.test('a revalidation with another digest replaces the facts', async (t) => {
  const { memory, inspector, time } = await benchWith(nginx);
  await time.advance(hour);
  memory.recall(nginx);
  const platforms = [{ os: 'linux', architecture: 's390x' }];
  await inspector.last().resolve(facts('nginx:1.25', { digest: digestOf('new'), platforms }));
  t.match(memory.recall(nginx), { digest: digestOf('new'), platforms });
  t.equal(memory.size, 1);
});

t.test('after a failed revalidation the facts are stale, and retries back off', async (t) => {
  const { memory, inspector, time } = await benchWith(nginx);
  await time.advance(hour);
  t.equal(memory.recall(nginx)?.stale, false);
  await inspector.last().resolve(failure('nginx:1.25', 'unavailable'));
  t.match(memory.recall(nginx), { stale: true, digest: digestOf('nginx:1.25') });
  t.equal(memory.recall(nginx)?.error, undefined);
  t.equal(inspector.lookups.length, 2);
  await time.advance(1000);
  memory.recall(nginx);
  t.equal(inspector.lookups.length, 3, 'tried again after the pause');
  await inspector.last().resolve(failure('nginx:1.25', 'unavailable'));
  await time.advance(1999);
  memory.recall(nginx);
  t.equal(inspector.lookups.length, 3, 'the pause has doubled');
  await time.advance(1);
  memory.recall(nginx);
  await inspector.last().resolve(facts('nginx:1.25'));
  t.equal(memory.recall(nginx)?.stale, false);
});

for (const code of ['unauthorized', 'forbidden', 'rate-limited', 'timeout', 'too-large'] as const) {
  t.test(`expired facts are served, marked stale, while lookups fail with ${code}`, async (t) => {
    const { memory, inspector, time, lookUp } = await benchWith(nginx);
    await time.advance(8 * day);
    t.equal(memory.recall(nginx), undefined, 'a lookup is needed');
    t.match(memory.lastKnown(nginx), { stale: true, digest: digestOf('nginx:1.25') });
    const stale = { stale: true, digest: digestOf('nginx:1.25'), error: undefined };
    t.match(await lookUp(nginx, failure('nginx:1.25', code)), stale);
    t.match(memory.recall(nginx), stale);
    await time.advance(hour);
    t.equal(memory.recall(nginx), undefined, 'the pause is over');
    await lookUp(nginx, facts('nginx:1.25'));
    t.equal(memory.recall(nginx)?.stale, false);
    t.equal(inspector.lookups.length, 3);
  });
}

t.test('not-found removes the facts', async (t) => {
  const { memory, time, revalidate } = await benchWith(nginx);
  await revalidate(nginx, failure('nginx:1.25', 'not-found'));
  t.match(memory.recall(nginx), { platforms: [], error: { code: 'not-found' } });
  t.equal(memory.lastKnown(nginx), undefined);
  t.equal(memory.size, 0);
  await time.advance(30_000);
  t.equal(memory.recall(nginx), undefined);
});

t.test('pull policy Always needs a lookup each time, or after pullAlwaysCacheTime', async (t) => {
  const plain = bench();
  await plain.lookUp(always, facts('nginx:1.25'));
  t.equal(plain.memory.recall(always), undefined);
  t.ok(plain.memory.recall(nginx), 'other pull policies use its facts');
  t.equal(plain.memory.recall(always), undefined, 'even if the facts serve other pull policies');
  await plain.lookUp(always, facts('nginx:1.25'));
  t.equal(plain.inspector.last().options.known?.digest, digestOf('nginx:1.25'), 'the digest is compared');
  t.equal(plain.inspector.lookups.length, 2);

  const cached = bench({ freshness: { ...defaultFreshness, pullAlwaysCacheTimeMs: minute } });
  await cached.lookUp(always, facts('nginx:1.25'));
  await cached.time.advance(minute - 1);
  t.ok(cached.memory.recall(always));
  await cached.time.advance(1);
  t.equal(cached.memory.recall(always), undefined);
  t.ok(cached.memory.recall(requestFor('nginx:1.25', { pullPolicy: 'Never' })));
});

t.test('pull policy Always gets stale facts while lookups fail', async (t) => {
  const { memory, time, lookUp } = await benchWith(always);
  t.match(await lookUp(always, failure('nginx:1.25', 'unavailable')), { stale: true, platforms: [{}, {}] });
  t.match(memory.recall(always), { stale: true });
  t.match(memory.recall(nginx), { stale: false }, 'fresh enough for other pull policies');
  await time.advance(1000);
  t.equal(memory.recall(always), undefined);
});

t.test('a digest is looked up once for every pull policy', async (t) => {
  const digest = digestOf('content');
  const { memory, inspector, time } = await benchWith(
    requestFor(`nginx@${digest}`),
    facts(`nginx@${digest}`),
  );
  await time.advance(300 * day);
  for (const image of [`nginx@${digest}`, `nginx:1.25@${digest}`, `docker.io/library/nginx@${digest}`]) {
    t.match(memory.recall(requestFor(image, { pullPolicy: 'Always' })), { image, digest, stale: false });
  }
  t.equal(inspector.lookups.length, 1);
});

t.test('facts of a tag also serve its digest in the same repository', async (t) => {
  const { memory, time, lookUp } = await benchWith(nginx);
  const byDigest = requestFor(`nginx@${digestOf('nginx:1.25')}`, { pullPolicy: 'Always' });
  t.match(memory.recall(byDigest), { image: byDigest.image, freshUntil: '2027-11-21T12:00:00.000Z' });
  t.equal(memory.recall(requestFor(`ghcr.io/nginx@${digestOf('nginx:1.25')}`)), undefined);
  t.equal(memory.recall(requestFor(`nginxinc/nginx@${digestOf('nginx:1.25')}`)), undefined);
  await time.advance(30 * day);
  t.ok(memory.recall(byDigest), 'even after the tag expired');
  await lookUp(nginx, facts('nginx:1.25', { digest: digestOf('moved') }));
  t.equal(memory.recall(byDigest), undefined, 'removed when the tag changes its digest');
  t.ok(memory.recall(requestFor(`nginx@${digestOf('moved')}`)));
});

t.test('not-an-image with a digest is cached like facts', async (t) => {
  const error = { code: 'not-an-image', message: 'a chart' } as const;
  const { memory, inspector, time } = await benchWith(nginx, facts('nginx:1.25', { platforms: [], error }));
  t.match(memory.recall(nginx), { platforms: [], error, digest: digestOf('nginx:1.25') });
  await time.advance(15 * minute);
  t.match(memory.recall(nginx), { error });
  t.match(inspector.last().options.known, { error });
  t.equal([...memory.shared()].length, 1);
  t.match(
    await bench().lookUp(nginx, { ...failure('nginx:1.25', 'not-an-image') }),
    { error: { code: 'not-an-image' } },
    'without a digest it is a failure',
  );
});

t.test('overrides come first', async (t) => {
  const time = clockOfFacts();
  const overrides = compileOverrides([{ match: 'nginx', architectures: ['arm64'] }], time);
  const { memory, inspector } = bench({ overrides });
  t.match(memory.recall(always), { source: 'override', image: 'nginx:1.25', error: undefined });
  t.match(memory.lastKnown(nginx), { source: 'override', stale: false });
  t.match(await memory.lookup(always, { signal: neverAborted }), { source: 'override' });
  t.equal(memory.recall(requestFor('redis')), undefined);
  t.equal(inspector.lookups.length, 0);
  t.same([...memory.shared()], [], 'overrides are not shared');
});

t.test('a jump of the wall clock changes only dates', async (t) => {
  const { memory, inspector, time } = await benchWith(nginx);
  for (const jump of [-400 * day, 800 * day]) {
    time.setWall(time.now() + jump);
    t.equal(memory.recall(nginx)?.stale, false);
    t.equal(inspector.lookups.length, 1);
  }
  await time.advance(minute);
  t.equal(memory.recall(nginx)?.freshUntil, new Date(time.now() + 14 * minute).toISOString());
});

t.test('an answer with another digest than requested is dropped', async (t) => {
  const { memory, lines, lookUp } = bench();
  const request = requestFor(`nginx@${digestOf('content')}`);
  await lookUp(request, facts('nginx', { digest: digestOf('something else') }));
  t.equal(memory.recall(request), undefined);
  t.match(lines, [{ msg: 'facts of another digest than requested are ignored' }]);
});

t.test('a new override applies at once, also to cached images', async (t) => {
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

t.test('an override of an agent is returned but not cached', async (t) => {
  const { memory, lookUp } = bench();
  t.match(await lookUp(nginx, facts('nginx:1.25', { source: 'override' })), { source: 'override' });
  t.equal(memory.recall(nginx), undefined);
});

t.test('recalls, failures and inspections are counted', async (t) => {
  const metrics = createMetrics();
  const { memory, inspector, lookUp, revalidate } = bench({ metrics: createFactsMetrics(metrics) });
  const counts = async (): Promise<string[]> =>
    (await metrics.render())
      .split('\n')
      .filter((line) => line.startsWith('archwright_facts_') && !/ 0$|_bytes/.test(line))
      .map((line) => line.replace('archwright_facts_', ''));
  memory.recall(nginx);
  await lookUp(nginx, facts('nginx:1.25'));
  memory.recall(nginx);
  memory.recall(nginx);
  await revalidate(nginx, failure('nginx:1.25', 'timeout'));
  memory.recall(nginx);
  const both = [
    memory.lookup(requestFor('b'), { signal: neverAborted }),
    memory.lookup(requestFor('b'), { signal: neverAborted }),
  ];
  await settled();
  t.ok((await counts()).includes('inspections_in_flight 1'));
  await inspector.last().resolve(failure('b', 'not-found'));
  await Promise.all(both);
  memory.recall(requestFor('b'));
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
