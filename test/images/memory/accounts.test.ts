/** What depends on a pod's service account serves no other service account. */
import t from 'tap';
import type { ImageFacts, ImageRequest } from '../../../src/images/facts/facts.ts';
import { bench, digestOf, facts, failure, hour, question, settled, taught } from '../support.ts';

const image = 'corp.example/app:1';
const none = question(image);
const ofAccount = (name: string, more: Parameters<typeof question>[1] = {}): ImageRequest => ({
  ...question(image, more),
  serviceAccount: { namespace: 'team', name },
});
const a = ofAccount('a');
const b = ofAccount('b');
const elsewhere: ImageRequest = { ...a, serviceAccount: { namespace: 'other', name: 'a' } };
const byAccount = facts(image, { credentialSource: 'service-account' });
/** A failure that another service account might not have met. */
const refusedTo = (code: Parameters<typeof failure>[1]): ImageFacts => ({
  ...failure(image, code),
  credentialSource: 'service-account',
});
const signal = new AbortController().signal;

t.test('facts of a service account serve only that account', async (t) => {
  const { memory } = await taught(a, byAccount);
  t.match(memory.recall(a), { credentialSource: 'service-account', source: 'memory' });
  t.match(memory.recall(ofAccount('a', { credentials: ['x'] })), { credentialSource: 'service-account' });
  t.match(memory.lastKnown(a), { digest: byAccount.digest });
  for (const other of [none, b, elsewhere, ofAccount('b', { credentials: ['x'] })]) {
    t.equal(memory.recall(other), undefined);
    t.equal(memory.lastKnown(other), undefined);
  }
  t.equal(memory.recall({ ...b, ...question(`corp.example/app@${digestOf(image)}`) }), undefined);
  t.same([...memory.shared()], []);
});

t.test('each account has its own', async (t) => {
  const { memory, teach } = await taught(a, byAccount);
  await teach(b, { ...byAccount, digest: digestOf('of b') });
  t.equal(memory.recall(a)?.digest, digestOf(image));
  t.equal(memory.recall(b)?.digest, digestOf('of b'));
});

t.test('what serves everybody serves every account, without asking again', async (t) => {
  for (const credentialSource of ['anonymous', 'docker-config', 'credential-provider'] as const) {
    const { memory } = await taught(a, facts(image, { credentialSource }));
    for (const any of [a, b, none]) t.match(memory.recall(any), { credentialSource });
  }
});

t.test(
  'a failure that depends on the account holds for that account and the same pull secrets',
  async (t) => {
    for (const code of ['unauthorized', 'not-found', 'unavailable', 'timeout'] as const) {
      const { memory, teach } = await taught(a, refusedTo(code));
      t.match(memory.recall(a), { error: { code }, credentialSource: 'service-account' }, 'and stays marked');
      const others = [none, b, elsewhere, ofAccount('a', { credentials: ['x'] })];
      for (const other of others) t.equal(memory.recall(other), undefined);
      const withX = ofAccount('a', { credentials: ['x'] });
      await teach(withX, refusedTo(code));
      t.match(memory.recall(withX), { error: { code } });
      t.equal(memory.recall(ofAccount('b', { credentials: ['x'] })), undefined);
    }
  },
);

t.test('a failure that does not depend on it holds for all accounts', async (t) => {
  const { memory, teach } = await taught(ofAccount('z'), refusedTo('unauthorized'));
  await teach(a, failure(image, 'unauthorized'));
  for (const any of [a, b, none]) t.match(memory.recall(any), { error: { code: 'unauthorized' } });
});

t.test('what is refused to a question without an account is not refused to those with one', async (t) => {
  const { memory } = await taught(none, refusedTo('unauthorized'));
  t.match(memory.recall(none), { error: { code: 'unauthorized' } });
  t.equal(memory.recall(a), undefined);
});

t.test(
  'who joined the question of another account asks for itself where the answer depends on it',
  async (t) => {
    const { memory, inspector } = bench();
    const answers = [a, b, b, elsewhere, none, a].map((one) => memory.lookup(one, { signal }));
    await settled();
    t.equal(inspector.asked.length, 1);
    await inspector.last().answer(byAccount);
    t.same(
      inspector.asked.map(({ question: { serviceAccount: of } }) => of && `${of.namespace}/${of.name}`),
      ['team/a', 'team/b', 'other/a', undefined],
    );
    await inspector.asked[1]?.answer(refusedTo('forbidden'));
    await inspector.asked[2]?.answer({ ...byAccount, digest: digestOf('elsewhere') });
    await inspector.asked[3]?.answer(refusedTo('unauthorized'));
    t.match(await Promise.all(answers), [
      { digest: digestOf(image) },
      { error: { code: 'forbidden' } },
      { error: { code: 'forbidden' } },
      { digest: digestOf('elsewhere') },
      { error: { code: 'unauthorized' } },
      { digest: digestOf(image) },
    ]);
  },
);

t.test('accounts share one question where the answer does not depend on them', async (t) => {
  const { memory, inspector } = bench();
  const answers = [a, b, none].map((one) => memory.lookup(one, { signal }));
  await settled();
  await inspector.last().answer(failure(image, 'not-found'));
  t.match(
    await Promise.all(answers),
    answers.map(() => ({ error: { code: 'not-found' } })),
  );
  t.equal(inspector.asked.length, 1);
});

t.test('who joined does not get older shared facts for a refusal that was another account’s', async (t) => {
  const { memory, inspector, revalidate } = await taught(none);
  await revalidate(a, refusedTo('unauthorized'));
  t.equal(memory.recall(a), undefined);
  const answers = [a, b].map((one) => memory.lookup(one, { signal }));
  await settled();
  await inspector.last().answer(refusedTo('forbidden'));
  await inspector.last().answer({ ...byAccount, digest: digestOf('of b') });
  t.match(await Promise.all(answers), [
    { digest: digestOf(image), stale: true },
    { digest: digestOf('of b'), stale: false },
  ]);
});

t.test('who joined does not get older facts of another account while the registry fails', async (t) => {
  const { memory, inspector } = await taught(a, byAccount);
  const always = { pullPolicy: 'Always' } as const;
  const answers = ['a', 'b'].map((name) => memory.lookup(ofAccount(name, always), { signal }));
  await settled();
  await inspector.last().answer(failure(image, 'unavailable'));
  await inspector.last().answer(failure(image, 'unavailable'));
  t.match(await Promise.all(answers), [
    { digest: digestOf(image), stale: true },
    { digest: undefined, error: { code: 'unavailable' } },
  ]);
});

t.test('facts of an account are confirmed for that account, without pull secrets', async (t) => {
  const { memory, inspector, time } = await taught(a, byAccount);
  await time.advance(hour);
  t.match(memory.recall(ofAccount('a', { credentials: ['x'] })), { stale: false });
  t.match(inspector.last().question, { serviceAccount: { name: 'a' }, pullCredentials: [] });
  await inspector.last().answer(refusedTo('unauthorized'));
  t.match(memory.recall(a), { stale: true });
  t.equal(memory.recall(b), undefined);
});

t.test('facts of an account that are gone are forgotten', async (t) => {
  const { memory, revalidate } = await taught(a, byAccount);
  await revalidate(a, refusedTo('not-found'));
  t.equal(memory.lastKnown(a), undefined);
  t.equal(memory.size, 0);
});

t.test('shared facts are confirmed without an account', async (t) => {
  const { memory, inspector, time } = await taught(a);
  await time.advance(hour);
  memory.recall(a);
  t.equal(inspector.last().question.serviceAccount, undefined);
});

t.test('an image that became private is asked for with the account only where that can help', async (t) => {
  for (const [refusal, asked] of [
    [refusedTo('unauthorized'), 3],
    [failure(image, 'unauthorized'), 2],
  ] as const) {
    const { memory, inspector } = await taught(none);
    const answer = memory.lookup(ofAccount('a', { pullPolicy: 'Always' }), { signal });
    await settled();
    t.equal(inspector.last().question.serviceAccount, undefined);
    await inspector.last().answer(refusal);
    t.equal(inspector.asked.length, asked);
    if (asked === 3) await inspector.last().answer({ ...byAccount, digest: digestOf('private') });
    t.match(await answer, asked === 3 ? { digest: digestOf('private') } : { stale: true });
  }
});

t.test('once answers depend on accounts, a time-out of one holds up no other', async (t) => {
  const { memory, time, teach } = await taught(ofAccount('z'), refusedTo('unauthorized'));
  const answer = memory.lookup(a, { signal });
  await settled();
  await time.advance(15_000);
  t.match(await answer, { error: { code: 'timeout' } });
  t.match(memory.recall(a), { error: { code: 'timeout' } });
  t.equal(memory.recall(b), undefined);
  t.match(await teach(b, failure(image, 'timeout')), { error: { code: 'timeout' } }, 'an agent’s too');
  t.match(memory.recall(b), { error: { code: 'timeout' } });
  t.equal(memory.recall(elsewhere), undefined);
  await teach(elsewhere, failure(image, 'unavailable'));
  t.match(memory.recall(ofAccount('c')), { error: { code: 'unavailable' } }, 'other trouble is everybody’s');
});

t.test('where no answer ever depended on one, a time-out is everybody’s', async (t) => {
  const { memory } = await taught(a, failure(image, 'timeout'));
  for (const any of [a, b, none]) t.match(memory.recall(any), { error: { code: 'timeout' } });
});

t.test('an agent that claims an account where none was sent is not believed', async (t) => {
  const { memory } = await taught(none, byAccount);
  memory.learn(byAccount);
  for (const any of [none, a]) t.equal(memory.recall(any), undefined);
  t.equal(memory.size, 0);
});
