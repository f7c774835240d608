/** What the model does not hold: callers at the same time, spellings, times of others, faults. */
import t from 'tap';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { ofAnyAge } from '../../../src/images/facts/facts.ts';
import type { Overrides } from '../../../src/images/sources/overrides.ts';
import { digestOf, factsOf, failureOf, requestFor } from '../../support/facts.ts';
import { bench, benchWith, day, hour, minute, settled } from '../support.ts';
import { like } from '../../support/like.ts';

const nginx = requestFor('nginx:1.25');
const withX = requestFor('nginx:1.25', { credentials: ['x'] });

t.test('requests at the same time share a lookup; each gets the image as it wrote it', async (t) => {
  const { get, source } = bench();
  const spellings = ['nginx:1.25', 'docker.io/nginx:1.25', 'docker.io/library/nginx:1.25'];
  const answers = spellings.map((image) => get(requestFor(image)));
  await settled();
  t.equal(source.lookups.length, 1);
  await source.last().answer(factsOf('nginx:1.25'));
  t.strictSame(
    (await Promise.all(answers)).map(({ image, digest }) => ({ image, digest })),
    spellings.map((image) => ({ image, digest: digestOf('nginx:1.25') })),
  );
});

t.test('requests with other credentials, accounts, namespaces or ages make their own lookups', async (t) => {
  const { get, source } = bench();
  const account = { namespace: 'team', name: 'a' };
  const all = [
    nginx,
    withX,
    { ...nginx, serviceAccount: account },
    { ...nginx, namespace: 'b' },
    { ...nginx, maxAgeMs: 0 },
  ];
  for (const request of [...all, ...all]) void get(request);
  await settled();
  t.equal(source.lookups.length, all.length);
});

t.test('an exception of the source is logged, answered and backed off', async (t) => {
  const { cache, get, source, lines } = bench();
  const answer = get(nginx);
  await settled();
  await source.last().fail(new TypeError('undefined is not a function'));
  t.equal((await answer).error?.code, 'unavailable');
  t.equal(lines[0]?.['msg'], 'the lookup of an image failed unexpectedly');
  t.equal(cache.peek(nginx)?.error?.code, 'unavailable');
});

t.test(
  'a refresh passes the known facts to the source, and the age that an agent may answer with',
  async (t) => {
    const { cache, source, clock } = await benchWith(nginx);
    await clock.advance(15 * minute);
    cache.peek(withX);
    cache.peek(nginx);
    t.equal(source.lookups.length, 2, 'one refresh');
    const { request, options } = source.last();
    t.equal(options.known?.digest, digestOf('nginx:1.25'));
    t.strictSame(request.pullCredentials, [], 'shared facts are confirmed without the credentials of a pod');
    t.equal(request.maxAgeMs, 7.5 * minute);
  },
);

t.test('refreshes use places that are free; lookups of pods come first', async (t) => {
  const { cache, get, source, clock } = bench({ concurrentLookups: 30, lookupsPerHost: 30 });
  const images = Array.from({ length: 50 }, (_, index) => requestFor(`app-${index}`));
  for (const { image } of images) cache.learn(factsOf(image, { source: 'memory' }));
  await clock.advance(hour);
  for (const request of images) cache.peek(request);
  t.equal(source.lookups.length, 10, 'a third of the places');
  void get(requestFor('new', { namespace: 'other' }));
  await settled();
  t.equal(source.last().request.image, 'new');
});

t.test(
  'the answer of an agent is as old as the agent says, but no older than the request allows',
  async (t) => {
    const { cache, lookUp, clock } = bench();
    const memory = { source: 'memory' } as const;
    await lookUp(nginx, factsOf('nginx:1.25', { ...memory, confirmedAt: '2026-11-21T11:50:00Z' }));
    t.equal(cache.peek(nginx)?.confirmedAt, '2026-11-21T11:50:00.000Z');
    await clock.advance(minute);
    const wrongClock = factsOf('nginx:1.25', { ...memory, confirmedAt: '2020-01-01T00:00:00Z' });
    like(t, await lookUp({ ...nginx, maxAgeMs: 5000 }, wrongClock), { digest: digestOf('nginx:1.25') });
    t.equal(cache.peek(nginx)?.confirmedAt, '2026-11-21T12:00:55.000Z');
    const ahead = factsOf('redis', { ...memory, confirmedAt: '2200-01-01T00:00:00Z' });
    await lookUp(requestFor('redis'), ahead);
    t.equal(cache.peek(requestFor('redis'))?.confirmedAt, '2026-11-21T12:01:00.000Z');
  },
);

t.test('while a registry fails, stale facts of an agent are requested less and less often', async (t) => {
  const { cache, clock, lookUp } = bench();
  const stale = factsOf('nginx:1.25', { stale: true, source: 'memory', confirmedAt: '2026-11-10T12:00:00Z' });
  const pauses: number[] = [];
  for (let attempt = 0; attempt < 5; attempt += 1) {
    await lookUp(nginx, stale);
    const from = clock.monotonic();
    while (cache.peek(nginx)) await clock.advance(500);
    pauses.push(clock.monotonic() - from);
  }
  t.ok((pauses.at(-1) ?? 0) > 4 * (pauses[0] ?? 0), pauses.join(', '));
});

t.test('facts of a tag do not answer for the same digest in another repository', async (t) => {
  const { cache } = await benchWith(nginx);
  for (const [name, isKnown] of [
    ['nginx', true],
    ['team/nginx', false],
  ] as const)
    t.equal(cache.peek(requestFor(`${name}@${digestOf('nginx:1.25')}`)) !== undefined, isKnown, name);
});

t.test(
  'a short name that nodes resolve by themselves has its own facts, which are not passed on',
  async (t) => {
    const { cache, get, source } = await benchWith(nginx);
    const short = { ...nginx, shortName: 'nginx' };
    const byDigest = { ...requestFor(`nginx@${digestOf('nginx:1.25')}`), shortName: 'nginx' };
    for (const request of [short, byDigest]) t.equal(cache.peek(request), undefined, request.image);
    const answer = get(short);
    await settled();
    await source.last().answer(factsOf('nginx:1.25', { digest: digestOf('other') }));
    t.equal((await answer).digest, digestOf('other'));
    t.equal(cache.peek(short)?.digest, digestOf('other'));
    t.equal(cache.peek(nginx)?.digest, digestOf('nginx:1.25'));
    t.equal(
      cache.peek({ ...short, shortName: 'library/nginx' }),
      undefined,
      'CRI-O has aliases for names as written',
    );
    t.equal([...cache.shared()].length, 1);
  },
);

t.test('learned facts that cannot be shared, or are not of the image, are ignored', async (t) => {
  const { cache, source } = bench();
  const memory = { source: 'memory' } as const;
  cache.learn(failureOf('redis', 'not-found'));
  cache.learn({ ...factsOf('busybox', memory), image: 'no such reference!' });
  cache.learn(factsOf('busybox', { source: 'override' }));
  cache.learn(factsOf('httpd', { ...memory, credentialSource: 'pull-secret' }));
  cache.learn(factsOf(`redis@${digestOf('r')}`, { ...memory, digest: digestOf('other') }));
  cache.learn(factsOf('alpine', { ...memory, confirmedAt: 'tomorrow' }));
  t.strictSame(
    [...cache.shared()].map(({ image }) => image),
    ['docker.io/library/alpine:latest'],
  );
  t.equal(cache.peek(requestFor('alpine')), undefined, 'a date that cannot be read is long ago');
  t.equal(source.lookups.length, 0);
});

t.test('after a tag has drifted, older answers of agents do not count', async (t) => {
  const { cache, lookUp, source, clock } = await benchWith(nginx);
  cache.forget([{ image: 'nginx:1.25', digest: digestOf('new') }]);
  await clock.advance(2000);
  await lookUp(nginx, factsOf('nginx:1.25', { digest: digestOf('new') }));
  t.equal(source.last().request.maxAgeMs, 2000, 'the agent has to confirm');
});

t.test('attack: facts of a secret or an account are dropped if the request had none', async (t) => {
  for (const credentialSource of ['pull-secret', 'service-account'] as const) {
    const { cache } = await benchWith(nginx, factsOf('nginx:1.25', { credentialSource }));
    for (const request of [nginx, withX]) t.equal(cache.peek(ofAnyAge(request)), undefined);
    t.equal(cache.size, 0);
  }
});

t.test("an agent's override is used and not remembered", async (t) => {
  const { cache, lookUp } = bench();
  const { digest: _, ...override } = factsOf('nginx:1.25', { source: 'override' });
  for (const request of [nginx, requestFor(`nginx@${digestOf('nginx:1.25')}`)]) {
    like(t, await lookUp(request, override), { source: 'override', error: undefined });
    t.equal(cache.peek(request), undefined);
  }
});

t.test('overrides come first, and a new one applies at once', async (t) => {
  let architectures: readonly string[] | undefined;
  const names: unknown[] = [];
  const find: Overrides['find'] = (image, _, shortName) => {
    names.push(shortName);
    return architectures && factsOf(image, { source: 'override', platforms: [] });
  };
  const { cache, lookUp } = bench({ overrides: () => ({ find }) });
  await lookUp(nginx, factsOf('nginx:1.25'));
  t.equal(cache.peek(nginx)?.source, 'memory');
  architectures = [];
  t.equal(cache.peek(nginx)?.source, 'override');
  cache.peek({ ...nginx, shortName: 'nginx' });
  t.equal(names.at(-1), 'nginx', 'no rules on registries for it');
});

t.test('a wall clock that is set changes no age', async (t) => {
  const { cache, clock } = await benchWith(nginx);
  clock.setWall(clock.now() + 30 * day);
  t.equal(cache.peek(nginx)?.stale, false);
  clock.setWall(clock.now() - 60 * day);
  await clock.advance(8 * day);
  t.equal(cache.peek(nginx), undefined);
});

t.test('too many waiting lookups of a namespace are refused, which is not remembered', async (t) => {
  const { cache, get, source } = bench();
  const answers = Array.from({ length: 4300 }, (_, index) => get(requestFor(`app-${index}`)));
  const last = await answers.at(-1);
  t.equal(last?.error?.code, 'rate-limited');
  t.ok(source.lookups.length < 200, 'a namespace has a share of the places');
  t.equal(cache.peek(requestFor('app-4299')), undefined);
  await cache.close();
});

t.test('close ends lookups without remembering them, and refuses further ones', async (t) => {
  const { cache, get, source, clock } = await benchWith(nginx);
  const redis = requestFor('redis');
  const waiting = get(redis);
  await settled();
  await cache.close();
  t.equal(clock.pending, 0);
  like(t, (await waiting).error, { code: 'unavailable', message: 'the program is ending' });
  t.ok(source.last().options.signal.aborted);
  t.equal(cache.peek(redis), undefined);
  t.equal((await get(redis)).error?.code, 'unavailable');
  await clock.advance(hour);
  t.equal(cache.peek(nginx)?.stale, false);
  t.equal(source.lookups.length, 2);
});

t.test('entries and failures are counted', async (t) => {
  const registry = createMetrics();
  const { lookUp } = bench({ metrics: registry });
  await lookUp(nginx, factsOf('nginx:1.25'));
  await lookUp(requestFor('gone'), failureOf('gone', 'not-found'));
  const text = await registry.render();
  for (const line of ['archwright_facts_failures_total{code="not-found"} 1', 'archwright_facts_entries 2'])
    t.ok(text.includes(`${line}\n`), line);
});
