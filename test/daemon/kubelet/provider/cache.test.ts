import t from 'tap';
import {
  cacheKey,
  singleFlightKey,
  serviceAccountKey,
  tokenHash,
  CredentialCache,
  type Auth,
} from '../../../../daemon/kubelet/provider/cache.ts';
import { secret } from '../../../../src/telemetry/secret.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';

const auth = (username = 'u', password = 'p'): Auth =>
  new Map([['k', { username, password: secret(password) }]]);
const user = (found: Auth | undefined): string | undefined => found?.get('k')?.username;

t.test('a lookup deletes all expired entries', async (t) => {
  const clock = createFakeClock();
  const cache = new CredentialCache(clock);
  cache.set(cacheKey('a'), auth(), 1000);
  cache.set(cacheKey('b'), auth(), 2000);
  await clock.advance(1000);
  t.ok(cache.get('a'));
  await clock.advance(1);
  t.notOk(cache.get('x'));
  t.equal(cache.size, 1);
});

t.test('limits on number and size delete the oldest entries first', async (t) => {
  const few = new CredentialCache(createFakeClock(), { maxEntries: 2, maxBytes: 10_000 });
  for (const name of ['a', 'b', 'a', 'c']) few.set(cacheKey(name), auth(name), 1000);
  t.strictSame(
    ['a', 'b', 'c'].map((name) => user(few.get(name))),
    ['a', undefined, 'c'],
  );
  const small = new CredentialCache(createFakeClock(), { maxEntries: 1000, maxBytes: 10_000 });
  for (let index = 0; index < 100; index += 1)
    small.set(cacheKey(`i${index}`), auth('u', 'x'.repeat(900)), 1000);
  t.ok(small.size >= 5 && small.size <= 10, `${small.size}`);
  t.ok(small.get('i99'));
  small.set(cacheKey('large'), auth('u', 'x'.repeat(20_000)), 1000);
  t.equal(small.size, 0, 'an entry larger than the limit is not cached');
});

t.test('cache keys differ by input and do not contain the token', async (t) => {
  const account = { namespace: 'n', name: 'a', uid: 'u', annotations: { k: 'v' } };
  const token = tokenHash(secret('hunter22'));
  t.equal(tokenHash(secret('')), '');
  const keys = [
    cacheKey('ab'),
    cacheKey('a', 'b'),
    serviceAccountKey(account, 'ServiceAccount', token),
    serviceAccountKey(account, 'Token', token),
    serviceAccountKey({ ...account, name: 'au', uid: '' }, 'Token', token),
    serviceAccountKey({ ...account, annotations: { kv: '' } }, 'Token', token),
    singleFlightKey('a', token, {}),
    singleFlightKey('a', token, { k: 'v' }),
  ];
  t.equal(new Set(keys).size, keys.length);
  t.notMatch(keys.join(), /hunter22/);
});
