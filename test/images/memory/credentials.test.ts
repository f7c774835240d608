import t from 'tap';
import { bench, digestOf, facts, failure, hour, requestFor, settled, benchWith } from '../support.ts';
import { neverAborted } from '../../support/never-aborted.ts';

const image = 'corp.example/app:1';
const none = requestFor(image);
const withX = requestFor(image, { credentials: ['x'] });
const withY = requestFor(image, { credentials: ['y'] });
const withXY = requestFor(image, { credentials: ['x', 'y'] });
const bySecret = facts(image, { credentialSource: 'pull-secret' });

t.test('facts learned with a pull secret serve only pods that present it', async (t) => {
  const { memory } = await benchWith(withX, bySecret);
  t.match(memory.recall(withX), { credentialSource: 'pull-secret', source: 'memory' });
  t.match(memory.recall(withXY), { credentialSource: 'pull-secret' }, 'together with others too');
  for (const other of [none, withY]) {
    t.equal(memory.recall(other), undefined);
    t.equal(memory.lastKnown(other), undefined);
  }
  t.equal(
    memory.recall(requestFor(`corp.example/app@${digestOf(image)}`)),
    undefined,
    'not by digest either',
  );
  t.same([...memory.shared()], []);
});

t.test('facts learned with several pull secrets serve only pods that present exactly those', async (t) => {
  const { memory } = await benchWith(withXY, bySecret);
  t.ok(memory.recall(withXY));
  t.ok(memory.recall(requestFor(image, { credentials: ['y', 'x'] })), 'in any order');
  for (const other of [none, withX, withY, requestFor(image, { credentials: ['x', 'y', 'z'] })]) {
    t.equal(memory.recall(other), undefined);
  }
});

t.test('facts learned anonymously or with node credentials serve every pod', async (t) => {
  for (const credentialSource of ['anonymous', 'docker-config', 'registry-toml'] as const) {
    const { memory } = await benchWith(withX, facts(image, { credentialSource }));
    for (const any of [none, withX, withY]) t.match(memory.recall(any), { credentialSource });
    t.match([...memory.shared()], [{ credentialSource, image }]);
  }
});

t.test('a failure is cached for exactly the presented credentials', async (t) => {
  for (const code of ['unauthorized', 'not-found', 'unavailable'] as const) {
    const anonymous = bench();
    await anonymous.lookUp(none, failure(image, code));
    t.match(anonymous.memory.recall(none), { error: { code }, platforms: [] });
    t.equal(anonymous.memory.recall(withX), undefined);
    t.equal(anonymous.inspector.lookups.length, 1);

    const secret = bench();
    await secret.lookUp(withX, failure(image, code));
    t.match(secret.memory.recall(withX), { error: { code } });
    for (const other of [none, withY, withXY]) t.equal(secret.memory.recall(other), undefined);
  }
});

t.test('a cached failure has the time left until a retry', async (t) => {
  const { memory, time } = await benchWith(none, failure(image, 'rate-limited', 20_000));
  await time.advance(5000);
  t.match(memory.recall(none), {
    image,
    source: 'memory',
    freshUntil: '2026-11-21T12:00:20.000Z',
    error: { code: 'rate-limited', message: 'it is rate-limited', retryAfterMs: 15_000 },
  });
});

t.test('lookups with different credentials do not share a request', async (t) => {
  const { memory, inspector } = bench();
  const answers = [none, withX, withY, withX].map((one) => memory.lookup(one, { signal: neverAborted }));
  await settled();
  t.same(
    inspector.lookups.map(({ request }) => request.pullCredentials.map(({ id }) => id)),
    [[], ['x'], ['y']],
  );
  await inspector.lookups[0]?.resolve(failure(image, 'unauthorized'));
  await inspector.lookups[1]?.resolve(bySecret);
  await inspector.lookups[2]?.resolve(failure(image, 'forbidden'));
  t.match(await Promise.all(answers), [
    { error: { code: 'unauthorized' } },
    { credentialSource: 'pull-secret', error: undefined },
    { error: { code: 'forbidden' } },
    { credentialSource: 'pull-secret', error: undefined },
  ]);
  t.match(memory.recall(withX), { error: undefined });
  t.match(memory.recall(none), { error: { code: 'unauthorized' } });
});

t.test('facts of a pull secret are revalidated with that secret alone', async (t) => {
  const { memory, inspector, time } = await benchWith(withX, bySecret);
  await time.advance(hour);
  t.match(memory.recall(withXY), { stale: false });
  t.same(
    inspector.last().request.pullCredentials.map(({ id }) => id),
    ['x'],
  );
  await inspector.last().resolve(failure(image, 'unauthorized'));
  t.match(memory.recall(withX), { stale: true });
  t.match(memory.recall(withXY), { stale: true });
  t.equal(memory.recall(none), undefined);
});

t.test('shared facts are revalidated without the pod’s secret', async (t) => {
  const { memory, inspector, time } = await benchWith(none);
  await time.advance(hour);
  memory.recall(withX);
  t.same(inspector.last().request.pullCredentials, []);
});

t.test('one request for shared facts serves lookups with any secret', async (t) => {
  const { memory, inspector, lookUp } = bench();
  await lookUp(none, facts(image));
  const always = (credentials: string[]): Promise<unknown> =>
    memory.lookup(requestFor(image, { pullPolicy: 'Always', credentials }), { signal: neverAborted });
  const answers = [always(['x']), always(['y']), always([])];
  await settled();
  t.equal(inspector.lookups.length, 2);
  await inspector.last().resolve(facts(image));
  t.match(await Promise.all(answers), [
    { source: 'registry' },
    { source: 'registry' },
    { source: 'registry' },
  ]);
});

t.test('if an image becomes private, the pod’s secret is tried', async (t) => {
  for (const code of ['unauthorized', 'forbidden', 'not-found'] as const) {
    const { memory, inspector, lookUp } = bench();
    await lookUp(none, facts(image));
    const answer = memory.lookup(requestFor(image, { pullPolicy: 'Always', credentials: ['x'] }), {
      signal: neverAborted,
    });
    await settled();
    t.same(inspector.last().request.pullCredentials, []);
    await inspector.last().resolve(failure(image, code));
    t.same(
      inspector.last().request.pullCredentials.map(({ id }) => id),
      ['x'],
      code,
    );
    await inspector.last().resolve({ ...bySecret, digest: digestOf('private') });
    t.match(await answer, { digest: digestOf('private'), stale: false });
    await lookUp(requestFor(image, { pullPolicy: 'Always', credentials: ['x'] }), {
      ...bySecret,
      digest: digestOf('private'),
    });
    t.equal(inspector.lookups.length, 4, 'the next lookup uses the secret at once');
  }
});

t.test('while a registry refuses shared facts, a lookup with a secret does not use them', async (t) => {
  const { memory, lookUp, revalidate } = await benchWith(none);
  await revalidate(none, failure(image, 'unauthorized'));
  t.match(memory.recall(none), { stale: true });
  t.equal(memory.recall(withX), undefined);
  await lookUp(withX, { ...bySecret, digest: digestOf('private') });
  t.match(memory.recall(withX), { digest: digestOf('private'), stale: false });
  t.match(memory.recall(none), { digest: digestOf(image), stale: true });
});

t.test('not found with one secret does not remove the shared facts', async (t) => {
  const { memory, lookUp, revalidate } = await benchWith(none);
  await revalidate(none, failure(image, 'unauthorized'));
  t.match(await lookUp(withX, failure(image, 'not-found')), { platforms: [], error: { code: 'not-found' } });
  t.match(memory.recall(withX), { platforms: [], error: { code: 'not-found' } });
  t.match(memory.recall(none), { digest: digestOf(image), stale: true });
  t.match(await lookUp(withY, failure(image, 'unavailable')), { digest: digestOf(image), stale: true });
  t.match(memory.recall(withY), { digest: digestOf(image), stale: true }, 'old facts are better than none');
});

t.test('lastKnown returns the newest facts that the pod may see', async (t) => {
  const { memory, time, lookUp, revalidate } = await benchWith(withX, bySecret);
  await time.advance(hour);
  memory.learn(
    facts(image, { digest: digestOf('public'), source: 'memory', freshUntil: '2026-11-21T13:15:00Z' }),
  );
  t.equal(memory.lastKnown(withX)?.digest, digestOf('public'));
  await revalidate(withX, failure(image, 'forbidden'));
  await lookUp(requestFor(image, { pullPolicy: 'Always', credentials: ['x'] }), {
    ...bySecret,
    digest: digestOf('private'),
  });
  t.equal(memory.lastKnown(withX)?.digest, digestOf('private'));
  t.equal(memory.lastKnown(none)?.digest, digestOf('public'));
});

t.test('attack: facts of a secret are dropped if the request had none', async (t) => {
  const { memory } = await benchWith(none, bySecret);
  for (const any of [none, withX]) t.equal(memory.recall(any), undefined);
  memory.learn(bySecret);
  t.equal(memory.size, 0);
});
