import t from 'tap';
import type { Attempt } from '../../../src/registry/manifest-lookup.ts';
import { bench, day, digestOf, facts, failure, hour, requestFor, settled, benchWith } from '../support.ts';
import { neverAborted } from '../../support/never-aborted.ts';

const nginx = requestFor('nginx:1.25');

t.test('concurrent lookups share one request; each result has the image as it was written', async (t) => {
  const { memory, inspector } = bench();
  const answers = ['nginx:1.25', 'docker.io/nginx:1.25', 'nginx:1.25'].map((image) =>
    memory.lookup(requestFor(image), { signal: neverAborted }),
  );
  await settled();
  t.equal(inspector.lookups.length, 1);
  await inspector.last().resolve(facts('nginx:1.25'));
  t.same(
    (await Promise.all(answers)).map(({ image, digest }) => [image, digest]),
    [
      ['nginx:1.25', digestOf('nginx:1.25')],
      ['docker.io/nginx:1.25', digestOf('nginx:1.25')],
      ['nginx:1.25', digestOf('nginx:1.25')],
    ],
  );
});

t.test('a lookup is answered from memory if possible', async (t) => {
  const { memory, inspector } = await benchWith(nginx);
  t.match(await memory.lookup(nginx, { signal: neverAborted }), { source: 'memory' });
  t.equal(inspector.lookups.length, 1);
});

t.test('an aborted lookup leaves its request running, and the next lookup finds the answer', async (t) => {
  const { memory, inspector } = bench();
  const controller = new AbortController();
  const reason = new Error('no time left');
  const impatient = t.rejects(memory.lookup(nginx, { signal: controller.signal }), reason);
  await settled();
  controller.abort(reason);
  await impatient;
  t.equal(inspector.last().options.signal.aborted, false);
  await t.rejects(
    memory.lookup(nginx, { signal: controller.signal }),
    reason,
    'an aborted signal starts no request',
  );
  await inspector.last().resolve(facts('nginx:1.25'));
  t.ok(memory.recall(nginx));
  t.equal(inspector.lookups.length, 1);
});

t.test('a request times out even if the source ignores its signal', async (t) => {
  const { memory, inspector, time } = bench({ lookupTimeoutMs: 3000 });
  const answer = memory.lookup(nginx, { signal: neverAborted });
  await settled();
  await time.advance(3000);
  t.match(await answer, { platforms: [], error: { code: 'timeout', message: 'not answered within 3 s' } });
  t.ok(inspector.last().options.signal.aborted);
  t.match(memory.recall(nginx), { error: { code: 'timeout' } });
  await inspector.last().resolve(facts('nginx:1.25'));
  t.match(memory.recall(nginx), { error: { code: 'timeout' } }, 'a late answer is ignored');
});

t.test('an exception of the source is logged, answered and backed off', async (t) => {
  const { memory, inspector, lines } = bench();
  const answer = memory.lookup(nginx, { signal: neverAborted });
  await settled();
  await inspector.last().reject(new TypeError('undefined is not a function'));
  t.match(await answer, { error: { code: 'unavailable' } });
  t.match(lines, [{ msg: 'inspecting an image failed unexpectedly' }]);
  t.match(memory.recall(nginx), { error: { code: 'unavailable' } });
});

t.test('an answer without digest and error is not-an-image', async (t) => {
  const { memory, lookUp } = bench();
  const { digest: _, ...answer } = facts('nginx:1.25');
  await lookUp(nginx, answer);
  t.match(memory.recall(nginx), { platforms: [], error: { code: 'not-an-image' } });
});

t.test('only the lookup that started the request gets its trace', async (t) => {
  const { memory, inspector } = bench();
  const traced: string[] = [];
  const trace = ({ url }: Attempt): void => {
    traced.push(url);
  };
  const first = memory.lookup(nginx, { signal: neverAborted, trace });
  const second = memory.lookup(nginx, { signal: neverAborted, trace });
  await settled();
  inspector.last().options.trace?.({
    method: 'GET',
    url: 'https://registry-1.docker.io/v2/library/nginx/manifests/1.25',
    purpose: 'manifest',
    credential: 'anonymous',
    status: 200,
    durationMs: 12,
  });
  await inspector.last().resolve(facts('nginx:1.25'));
  await Promise.all([first, second]);
  t.equal(traced.length, 1);
});

t.test('facts from the memory of an agent keep their age', async (t) => {
  const { memory, inspector, time, lookUp } = bench();
  const old = { source: 'memory', freshUntil: '2026-11-21T12:05:00.000Z' } as const;
  await lookUp(nginx, facts('nginx:1.25', old));
  await time.advance(5 * 60_000 - 1);
  memory.recall(nginx);
  t.equal(inspector.lookups.length, 1);
  await time.advance(1);
  memory.recall(nginx);
  t.equal(inspector.lookups.length, 2, 'due at the same time as at the agent');
  await inspector.last().resolve(facts('nginx:1.25', old));
  t.ok(memory.recall(nginx));
  t.equal(inspector.lookups.length, 2, 'the agent has no newer facts: no new request at once');
  await time.advance(1000);
  memory.recall(nginx);
  t.equal(inspector.lookups.length, 3);
});

t.test('stale facts of an agent are retried like a failure', async (t) => {
  const { memory, inspector, time, lookUp } = bench();
  const stale = facts('nginx:1.25', { stale: true, source: 'memory', freshUntil: '2026-11-10T12:00:00Z' });
  t.match(await lookUp(nginx, stale), { stale: true });
  t.match(memory.recall(nginx), { stale: true, digest: digestOf('nginx:1.25') });
  t.equal(inspector.lookups.length, 1);
  await time.advance(1000);
  t.equal(memory.recall(nginx), undefined);
});

t.test('older facts never replace newer ones', async (t) => {
  const { memory, time } = await benchWith(nginx);
  const older = { digest: digestOf('older'), source: 'memory', freshUntil: '2026-11-21T12:14:59Z' } as const;
  memory.learn(facts('nginx:1.25', older));
  t.equal(memory.recall(nginx)?.digest, digestOf('nginx:1.25'));
  await time.advance(60_000);
  memory.learn(facts('nginx:1.25', { ...older, freshUntil: '2026-11-21T12:15:01Z' }));
  t.equal(memory.recall(nginx)?.digest, digestOf('older'));
});

t.test('learn ignores failures, overrides and invalid facts, and bounds freshUntil', async (t) => {
  const { memory, inspector } = bench();
  const known = { source: 'memory' } as const;
  memory.learn(facts('nginx:1.25', { ...known, freshUntil: '2200-01-01T00:00:00Z' }));
  memory.learn(failure('redis', 'not-found'));
  memory.learn({ ...facts('nginx', known), image: 'no such reference!' });
  memory.learn(facts('busybox', { ...known, source: 'override' }));
  memory.learn(facts('alpine', { ...known, freshUntil: 'tomorrow' }));
  t.match(
    memory.recall(nginx),
    { freshUntil: '2026-11-21T12:15:00.000Z' },
    'a date ahead of our clock counts as now',
  );
  for (const image of ['redis', 'busybox', 'alpine'])
    t.equal(memory.recall(requestFor(image)), undefined, image);
  t.match(memory.lastKnown(requestFor('alpine')), { stale: true });
  t.same(
    [...memory.shared()].map(({ image }) => image),
    ['docker.io/library/nginx:1.25', 'docker.io/library/alpine:latest'],
  );
  t.equal(inspector.lookups.length, 0);
});

t.test('another memory can learn the shared facts', async (t) => {
  const from = bench();
  await from.lookUp(nginx, facts('nginx:1.25'));
  await from.lookUp(requestFor(`redis@${digestOf('r')}`), facts(`redis@${digestOf('r')}`));
  const to = bench();
  for (const one of from.memory.shared()) to.memory.learn(one);
  t.match(to.memory.recall(nginx), { platforms: [{}, {}], stale: false });
  t.match(to.memory.recall(requestFor(`redis@${digestOf('r')}`)), { stale: false });
  t.same([...to.memory.shared()], [...from.memory.shared()]);
});

t.test('concurrent revalidations are limited; lookups go first', async (t) => {
  const { memory, inspector, time } = bench();
  const images = Array.from({ length: 200 }, (_, index) => requestFor(`app-${index}`));
  for (const { image } of images) memory.learn(facts(image, { source: 'memory' }));
  await time.advance(hour);
  for (const one of images) memory.recall(one);
  t.equal(inspector.lookups.length, 171);
  void memory.lookup(requestFor('new'), { signal: neverAborted });
  await settled();
  t.equal(inspector.lookups.length, 172);
  for (const lookup of inspector.lookups) await lookup.resolve(facts(lookup.request.image));
  for (const one of images) memory.recall(one);
  t.equal(inspector.lookups.length, 172 + 29, 'later recalls start the others');
});

t.test('more than 4,096 waiting lookups are refused', async (t) => {
  const { memory, inspector } = bench();
  const answers = Array.from({ length: 4100 }, (_, index) =>
    memory.lookup(requestFor(`app-${index}`), { signal: neverAborted }),
  );
  t.match(
    await Promise.all(answers.slice(4096)),
    Array.from({ length: 4 }, () => ({ error: { code: 'rate-limited' } })),
  );
  t.equal(inspector.lookups.length, 171, 'a namespace has a share of the concurrent requests');
  t.equal(memory.recall(requestFor('app-4099')), undefined, 'the refusal is not cached');
  await memory.close();
});

t.test('close fails waiting lookups without caching, and stops further requests', async (t) => {
  const { memory, inspector, time } = await benchWith(nginx);
  const waiting = memory.lookup(requestFor('redis'), { signal: neverAborted });
  await settled();
  await memory.close();
  t.match(await waiting, { error: { code: 'unavailable', message: 'the program is ending' } });
  t.ok(inspector.last().options.signal.aborted);
  t.equal(memory.recall(requestFor('redis')), undefined);
  await time.advance(day);
  t.ok(memory.recall(nginx));
  t.equal(inspector.lookups.length, 2);
  t.match(await memory.lookup(requestFor('redis'), { signal: neverAborted }), {
    error: { code: 'unavailable' },
  });
  t.equal(time.pending, 0);
});
