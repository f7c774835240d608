/** Facts that depend on a service account serve only that account. */
import t from 'tap';
import type { ImageFacts, ImageRequest } from '../../../src/images/facts/facts.ts';
import { bench, digestOf, facts, failure, hour, requestFor, settled, benchWith } from '../support.ts';
import { neverAborted } from '../../support/never-aborted.ts';

const image = 'corp.example/app:1';
const none = requestFor(image);
const ofAccount = (name: string, more: Parameters<typeof requestFor>[1] = {}): ImageRequest => ({
  ...requestFor(image, more),
  serviceAccount: { namespace: 'team', name },
});
const a = ofAccount('a');
const b = ofAccount('b');
const elsewhere: ImageRequest = { ...a, serviceAccount: { namespace: 'other', name: 'a' } };
const byAccount = facts(image, { credentialSource: 'service-account' });
/** A failure that may depend on the service account. */
const refusedTo = (code: Parameters<typeof failure>[1]): ImageFacts => ({
  ...failure(image, code),
  credentialSource: 'service-account',
});

t.test('facts of a service account serve only that account', async (t) => {
  const { memory } = await benchWith(a, byAccount);
  t.match(memory.recall(a), { credentialSource: 'service-account', source: 'memory' });
  t.match(memory.recall(ofAccount('a', { credentials: ['x'] })), { credentialSource: 'service-account' });
  t.match(memory.lastKnown(a), { digest: byAccount.digest });
  for (const other of [none, b, elsewhere, ofAccount('b', { credentials: ['x'] })]) {
    t.equal(memory.recall(other), undefined);
    t.equal(memory.lastKnown(other), undefined);
  }
  t.equal(memory.recall({ ...b, ...requestFor(`corp.example/app@${digestOf(image)}`) }), undefined);
  t.same([...memory.shared()], []);
});

t.test('each account has its own facts', async (t) => {
  const { memory, lookUp } = await benchWith(a, byAccount);
  await lookUp(b, { ...byAccount, digest: digestOf('of b') });
  t.equal(memory.recall(a)?.digest, digestOf(image));
  t.equal(memory.recall(b)?.digest, digestOf('of b'));
});

t.test('shared facts serve every account without another lookup', async (t) => {
  for (const credentialSource of ['anonymous', 'docker-config', 'credential-provider'] as const) {
    const { memory } = await benchWith(a, facts(image, { credentialSource }));
    for (const any of [a, b, none]) t.match(memory.recall(any), { credentialSource });
  }
});

t.test(
  'a failure that depends on the account is cached for that account and its pull secrets only',
  async (t) => {
    for (const code of ['unauthorized', 'not-found', 'unavailable', 'timeout'] as const) {
      const { memory, lookUp } = await benchWith(a, refusedTo(code));
      t.match(
        memory.recall(a),
        { error: { code }, credentialSource: 'service-account' },
        'it keeps its source',
      );
      const others = [none, b, elsewhere, ofAccount('a', { credentials: ['x'] })];
      for (const other of others) t.equal(memory.recall(other), undefined);
      const withX = ofAccount('a', { credentials: ['x'] });
      await lookUp(withX, refusedTo(code));
      t.match(memory.recall(withX), { error: { code } });
      t.equal(memory.recall(ofAccount('b', { credentials: ['x'] })), undefined);
    }
  },
);

t.test('a failure that does not depend on the account is cached for all accounts', async (t) => {
  const { memory, lookUp } = await benchWith(ofAccount('z'), refusedTo('unauthorized'));
  await lookUp(a, failure(image, 'unauthorized'));
  for (const any of [a, b, none]) t.match(memory.recall(any), { error: { code: 'unauthorized' } });
});

t.test('a refusal without an account does not apply to lookups with one', async (t) => {
  const { memory } = await benchWith(none, refusedTo('unauthorized'));
  t.match(memory.recall(none), { error: { code: 'unauthorized' } });
  t.equal(memory.recall(a), undefined);
});

t.test(
  'a lookup that joined another account repeats the request if the answer depends on the account',
  async (t) => {
    const { memory, inspector } = bench();
    const answers = [a, b, b, elsewhere, none, a].map((one) => memory.lookup(one, { signal: neverAborted }));
    await settled();
    t.equal(inspector.lookups.length, 1);
    await inspector.last().resolve(byAccount);
    t.same(
      inspector.lookups.map(({ request: { serviceAccount: of } }) => of && `${of.namespace}/${of.name}`),
      ['team/a', 'team/b', 'other/a', undefined],
    );
    await inspector.lookups[1]?.resolve(refusedTo('forbidden'));
    await inspector.lookups[2]?.resolve({ ...byAccount, digest: digestOf('elsewhere') });
    await inspector.lookups[3]?.resolve(refusedTo('unauthorized'));
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

t.test('accounts share one request if the answer does not depend on them', async (t) => {
  const { memory, inspector } = bench();
  const answers = [a, b, none].map((one) => memory.lookup(one, { signal: neverAborted }));
  await settled();
  await inspector.last().resolve(failure(image, 'not-found'));
  t.match(
    await Promise.all(answers),
    answers.map(() => ({ error: { code: 'not-found' } })),
  );
  t.equal(inspector.lookups.length, 1);
});

t.test(
  'a refusal of one account does not serve old facts to an account that joined its lookup',
  async (t) => {
    const { memory, inspector, revalidate } = await benchWith(none);
    await revalidate(a, refusedTo('unauthorized'));
    t.equal(memory.recall(a), undefined);
    const answers = [a, b].map((one) => memory.lookup(one, { signal: neverAborted }));
    await settled();
    await inspector.last().resolve(refusedTo('forbidden'));
    await inspector.last().resolve({ ...byAccount, digest: digestOf('of b') });
    t.match(await Promise.all(answers), [
      { digest: digestOf(image), stale: true },
      { digest: digestOf('of b'), stale: false },
    ]);
  },
);

t.test(
  'while the registry fails, old facts of an account do not serve another that joined its lookup',
  async (t) => {
    const { memory, inspector } = await benchWith(a, byAccount);
    const always = { pullPolicy: 'Always' } as const;
    const answers = ['a', 'b'].map((name) =>
      memory.lookup(ofAccount(name, always), { signal: neverAborted }),
    );
    await settled();
    await inspector.last().resolve(failure(image, 'unavailable'));
    await inspector.last().resolve(failure(image, 'unavailable'));
    t.match(await Promise.all(answers), [
      { digest: digestOf(image), stale: true },
      { digest: undefined, error: { code: 'unavailable' } },
    ]);
  },
);

t.test('facts of an account are revalidated as that account, without pull secrets', async (t) => {
  const { memory, inspector, time } = await benchWith(a, byAccount);
  await time.advance(hour);
  t.match(memory.recall(ofAccount('a', { credentials: ['x'] })), { stale: false });
  t.match(inspector.last().request, { serviceAccount: { name: 'a' }, pullCredentials: [] });
  await inspector.last().resolve(refusedTo('unauthorized'));
  t.match(memory.recall(a), { stale: true });
  t.equal(memory.recall(b), undefined);
});

t.test('facts of an account are removed when the image is gone', async (t) => {
  const { memory, revalidate } = await benchWith(a, byAccount);
  await revalidate(a, refusedTo('not-found'));
  t.equal(memory.lastKnown(a), undefined);
  t.equal(memory.size, 0);
});

t.test('shared facts are revalidated without an account', async (t) => {
  const { memory, inspector, time } = await benchWith(a);
  await time.advance(hour);
  memory.recall(a);
  t.equal(inspector.last().request.serviceAccount, undefined);
});

t.test(
  'if shared facts become private, the account is tried only if the refusal depends on it',
  async (t) => {
    for (const [refusal, lookups] of [
      [refusedTo('unauthorized'), 3],
      [failure(image, 'unauthorized'), 2],
    ] as const) {
      const { memory, inspector } = await benchWith(none);
      const answer = memory.lookup(ofAccount('a', { pullPolicy: 'Always' }), { signal: neverAborted });
      await settled();
      t.equal(inspector.last().request.serviceAccount, undefined);
      await inspector.last().resolve(refusal);
      t.equal(inspector.lookups.length, lookups);
      if (lookups === 3) await inspector.last().resolve({ ...byAccount, digest: digestOf('private') });
      t.match(await answer, lookups === 3 ? { digest: digestOf('private') } : { stale: true });
    }
  },
);

t.test('once answers depend on accounts, a timeout is cached for one account only', async (t) => {
  const { memory, time, lookUp } = await benchWith(ofAccount('z'), refusedTo('unauthorized'));
  const answer = memory.lookup(a, { signal: neverAborted });
  await settled();
  await time.advance(15_000);
  t.match(await answer, { error: { code: 'timeout' } });
  t.match(memory.recall(a), { error: { code: 'timeout' } });
  t.equal(memory.recall(b), undefined);
  t.match(
    await lookUp(b, failure(image, 'timeout')),
    { error: { code: 'timeout' } },
    'a timeout reported by an agent too',
  );
  t.match(memory.recall(b), { error: { code: 'timeout' } });
  t.equal(memory.recall(elsewhere), undefined);
  await lookUp(elsewhere, failure(image, 'unavailable'));
  t.match(
    memory.recall(ofAccount('c')),
    { error: { code: 'unavailable' } },
    'other failures are cached for all accounts',
  );
});

t.test('while no answer depends on an account, a timeout is cached for all', async (t) => {
  const { memory } = await benchWith(a, failure(image, 'timeout'));
  for (const any of [a, b, none]) t.match(memory.recall(any), { error: { code: 'timeout' } });
});

t.test('attack: facts of an account are dropped if the request named none', async (t) => {
  const { memory } = await benchWith(none, byAccount);
  memory.learn(byAccount);
  for (const any of [none, a]) t.equal(memory.recall(any), undefined);
  t.equal(memory.size, 0);
});
