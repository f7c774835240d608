import t from 'tap';
import { bench, digestOf, facts, failure, hour, question, settled, taught } from '../support.ts';

const image = 'corp.example/app:1';
const none = question(image);
const withX = question(image, { credentials: ['x'] });
const withY = question(image, { credentials: ['y'] });
const withXY = question(image, { credentials: ['x', 'y'] });
const bySecret = facts(image, { credentialSource: 'pull-secret' });

t.test('what a pull secret learned serves only who presents it', async (t) => {
  const { memory } = await taught(withX, bySecret);
  t.match(memory.recall(withX), { credentialSource: 'pull-secret', source: 'memory' });
  t.match(memory.recall(withXY), { credentialSource: 'pull-secret' }, 'among others too');
  for (const other of [none, withY]) {
    t.equal(memory.recall(other), undefined);
    t.equal(memory.lastKnown(other), undefined);
  }
  t.equal(memory.recall(question(`corp.example/app@${digestOf(image)}`)), undefined, 'nor by digest');
  t.same([...memory.shared()], []);
});

t.test('where several were presented, nobody knows which one it was', async (t) => {
  const { memory } = await taught(withXY, bySecret);
  t.ok(memory.recall(withXY));
  t.ok(memory.recall(question(image, { credentials: ['y', 'x'] })), 'order does not count');
  for (const other of [none, withX, withY, question(image, { credentials: ['x', 'y', 'z'] })]) {
    t.equal(memory.recall(other), undefined);
  }
});

t.test('what anonymous or node credentials learned serves everybody', async (t) => {
  for (const credentialSource of ['anonymous', 'docker-config', 'registry-toml'] as const) {
    const { memory } = await taught(withX, facts(image, { credentialSource }));
    for (const any of [none, withX, withY]) t.match(memory.recall(any), { credentialSource });
    t.match([...memory.shared()], [{ credentialSource, image }]);
  }
});

t.test('a failure holds for exactly the presented credentials', async (t) => {
  for (const code of ['unauthorized', 'not-found', 'unavailable'] as const) {
    const anonymous = bench();
    await anonymous.teach(none, failure(image, code));
    t.match(anonymous.memory.recall(none), { error: { code }, platforms: [] });
    t.equal(anonymous.memory.recall(withX), undefined);
    t.equal(anonymous.inspector.asked.length, 1);

    const secret = bench();
    await secret.teach(withX, failure(image, code));
    t.match(secret.memory.recall(withX), { error: { code } });
    for (const other of [none, withY, withXY]) t.equal(secret.memory.recall(other), undefined);
  }
});

t.test('a remembered failure says when to ask again', async (t) => {
  const { memory, time } = await taught(none, failure(image, 'rate-limited', 20_000));
  await time.advance(5000);
  t.match(memory.recall(none), {
    image,
    source: 'memory',
    freshUntil: '2026-11-21T12:00:20.000Z',
    error: { code: 'rate-limited', message: 'it is rate-limited', retryAfterMs: 15_000 },
  });
});

t.test('questions with different credentials do not share a flight', async (t) => {
  const { memory, inspector } = bench();
  const signal = new AbortController().signal;
  const answers = [none, withX, withY, withX].map((one) => memory.lookup(one, { signal }));
  await settled();
  t.same(
    inspector.asked.map(({ question }) => question.pullCredentials.map(({ id }) => id)),
    [[], ['x'], ['y']],
  );
  await inspector.asked[0]?.answer(failure(image, 'unauthorized'));
  await inspector.asked[1]?.answer(bySecret);
  await inspector.asked[2]?.answer(failure(image, 'forbidden'));
  t.match(await Promise.all(answers), [
    { error: { code: 'unauthorized' } },
    { credentialSource: 'pull-secret', error: undefined },
    { error: { code: 'forbidden' } },
    { credentialSource: 'pull-secret', error: undefined },
  ]);
  t.match(memory.recall(withX), { error: undefined });
  t.match(memory.recall(none), { error: { code: 'unauthorized' } });
});

t.test('facts of a secret are confirmed with that secret alone', async (t) => {
  const { memory, inspector, time } = await taught(withX, bySecret);
  await time.advance(hour);
  t.match(memory.recall(withXY), { stale: false });
  t.same(
    inspector.last().question.pullCredentials.map(({ id }) => id),
    ['x'],
  );
  await inspector.last().answer(failure(image, 'unauthorized'));
  t.match(memory.recall(withX), { stale: true });
  t.match(memory.recall(withXY), { stale: true });
  t.equal(memory.recall(none), undefined);
});

t.test('shared facts are confirmed without the pod’s secret', async (t) => {
  const { memory, inspector, time } = await taught(none);
  await time.advance(hour);
  memory.recall(withX);
  t.same(inspector.last().question.pullCredentials, []);
});

t.test('shared facts that must be asked for serve all secrets with one request', async (t) => {
  const { memory, inspector, teach } = bench();
  const signal = new AbortController().signal;
  await teach(none, facts(image));
  const always = (credentials: string[]): Promise<unknown> =>
    memory.lookup(question(image, { pullPolicy: 'Always', credentials }), { signal });
  const answers = [always(['x']), always(['y']), always([])];
  await settled();
  t.equal(inspector.asked.length, 2);
  await inspector.last().answer(facts(image));
  t.match(await Promise.all(answers), [
    { source: 'registry' },
    { source: 'registry' },
    { source: 'registry' },
  ]);
});

t.test('an image that became private is asked for with the pod’s secret', async (t) => {
  for (const code of ['unauthorized', 'forbidden', 'not-found'] as const) {
    const { memory, inspector, teach } = bench();
    const signal = new AbortController().signal;
    await teach(none, facts(image));
    const answer = memory.lookup(question(image, { pullPolicy: 'Always', credentials: ['x'] }), { signal });
    await settled();
    t.same(inspector.last().question.pullCredentials, []);
    await inspector.last().answer(failure(image, code));
    t.same(
      inspector.last().question.pullCredentials.map(({ id }) => id),
      ['x'],
      code,
    );
    await inspector.last().answer({ ...bySecret, digest: digestOf('private') });
    t.match(await answer, { digest: digestOf('private'), stale: false });
    await teach(question(image, { pullPolicy: 'Always', credentials: ['x'] }), {
      ...bySecret,
      digest: digestOf('private'),
    });
    t.equal(inspector.asked.length, 4, 'the next one asks with the secret at once');
  }
});

t.test('while a registry refuses shared facts, a secret asks for itself', async (t) => {
  const { memory, teach, revalidate } = await taught(none);
  await revalidate(none, failure(image, 'unauthorized'));
  t.match(memory.recall(none), { stale: true });
  t.equal(memory.recall(withX), undefined);
  await teach(withX, { ...bySecret, digest: digestOf('private') });
  t.match(memory.recall(withX), { digest: digestOf('private'), stale: false });
  t.match(memory.recall(none), { digest: digestOf(image), stale: true });
});

t.test('an image that is gone for a secret is not gone for all', async (t) => {
  const { memory, teach, revalidate } = await taught(none);
  await revalidate(none, failure(image, 'unauthorized'));
  t.match(await teach(withX, failure(image, 'not-found')), { platforms: [], error: { code: 'not-found' } });
  t.match(memory.recall(withX), { platforms: [], error: { code: 'not-found' } });
  t.match(memory.recall(none), { digest: digestOf(image), stale: true });
  t.match(await teach(withY, failure(image, 'unavailable')), { digest: digestOf(image), stale: true });
  t.match(memory.recall(withY), { digest: digestOf(image), stale: true }, 'old facts are better than none');
});

t.test('of all that a pod may see, the newest is the last known', async (t) => {
  const { memory, time, teach, revalidate } = await taught(withX, bySecret);
  await time.advance(hour);
  memory.learn(
    facts(image, { digest: digestOf('public'), source: 'memory', freshUntil: '2026-11-21T13:15:00Z' }),
  );
  t.equal(memory.lastKnown(withX)?.digest, digestOf('public'));
  await revalidate(withX, failure(image, 'forbidden'));
  await teach(question(image, { pullPolicy: 'Always', credentials: ['x'] }), {
    ...bySecret,
    digest: digestOf('private'),
  });
  t.equal(memory.lastKnown(withX)?.digest, digestOf('private'));
  t.equal(memory.lastKnown(none)?.digest, digestOf('public'));
});

t.test('an agent that claims a secret where none was sent is not believed', async (t) => {
  const { memory } = await taught(none, bySecret);
  for (const any of [none, withX]) t.equal(memory.recall(any), undefined);
  memory.learn(bySecret);
  t.equal(memory.size, 0);
});
