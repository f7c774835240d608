import t from 'tap';
import {
  cacheKey,
  flightKey,
  globalKey,
  serviceAccountKey,
  tokenHash,
} from '../../../../daemon/kubelet/provider/cache-key.ts';
import { createCredentialCache, type Auth } from '../../../../daemon/kubelet/provider/cache.ts';
import { secret } from '../../../../src/telemetry/secret.ts';
import { stoppedClock } from '../support.ts';

const auth = (username = 'u', password = 'p'): Auth =>
  new Map([['k', { username, password: secret(password) }]]);
const user = (found: Auth | undefined): string | undefined => found?.get('k')?.username;

t.test('an image is found by itself, by its registry, then by all', async (t) => {
  const cache = createCredentialCache({ clock: stoppedClock() });
  cache.set(cacheKey(globalKey), auth('global'), 1000);
  t.equal(user(cache.get('r.example/a')), 'global');
  cache.set(cacheKey('r.example'), auth('registry'), 1000);
  cache.set(cacheKey('r.example/a'), auth('image'), 1000);
  t.equal(user(cache.get('r.example/a')), 'image');
  t.equal(user(cache.get('r.example/b')), 'registry');
  t.equal(user(cache.get('r.example:443/b')), 'global');
  t.equal(user(cache.get('r.example/a', Buffer.from('account'))), undefined, 'accounts are apart');
  cache.set(cacheKey('r.example/a', Buffer.from('account')), new Map(), 1000);
  t.same(cache.get('r.example/a', Buffer.from('account')), new Map(), 'an empty answer is one too');
});

t.test('an entry is over strictly after its end', async (t) => {
  const clock = stoppedClock();
  const cache = createCredentialCache({ clock });
  cache.set(cacheKey('a'), auth(), 1000);
  clock.at = 1000;
  t.ok(cache.get('a'));
  clock.at = 1001;
  t.notOk(cache.get('a'));
  t.equal(cache.size, 0);
  cache.set(cacheKey('a'), auth(), -1);
  t.notOk(cache.get('a'), 'a negative time is over already');
});

t.test('entries that nobody asks for go at most every 15 minutes', async (t) => {
  const clock = stoppedClock();
  const cache = createCredentialCache({ clock });
  cache.set(cacheKey('a'), auth(), 1000);
  cache.set(cacheKey('b'), auth(), 3_600_000);
  clock.at = 900_000;
  cache.get('x');
  t.equal(cache.size, 2);
  clock.at = 900_001;
  cache.get('x');
  t.equal(cache.size, 1);
});

t.test('it is bounded by number and by size, the oldest go first', async (t) => {
  const few = createCredentialCache({ clock: stoppedClock(), maxEntries: 2 });
  for (const name of ['a', 'b', 'a', 'c']) few.set(cacheKey(name), auth(name), 1000);
  t.same(
    ['a', 'b', 'c'].map((name) => user(few.get(name))),
    ['a', undefined, 'c'],
  );
  const small = createCredentialCache({ clock: stoppedClock(), maxBytes: 10_000 });
  for (let index = 0; index < 100; index += 1)
    small.set(cacheKey(`i${index}`), auth('u', 'x'.repeat(900)), 1000);
  t.ok(small.size >= 5 && small.size <= 10, `${small.size}`);
  t.ok(small.get('i99'));
  small.set(cacheKey('large'), auth('u', 'x'.repeat(20_000)), 1000);
  t.equal(small.size, 0, 'one that is larger than all is not kept');
});

t.test('keys of different things differ, and hold no token', async (t) => {
  const account = { namespace: 'n', name: 'a', uid: 'u', annotations: { k: 'v' } };
  const token = tokenHash(secret('hunter22'));
  t.equal(tokenHash(secret('')), '');
  const keys = [
    cacheKey('ab'),
    cacheKey('a', Buffer.from('b')),
    serviceAccountKey(account, 'ServiceAccount', token),
    serviceAccountKey(account, 'Token', token),
    serviceAccountKey({ ...account, name: 'au', uid: '' }, 'Token', token),
    serviceAccountKey({ ...account, annotations: { kv: '' } }, 'Token', token),
    flightKey('a', token, {}),
    flightKey('a', token, { k: 'v' }),
  ].map((key) => key.toString('hex'));
  t.equal(new Set(keys).size, keys.length);
  t.notMatch(keys.join(), Buffer.from('hunter22').toString('hex'));
  t.throws(() => cacheKey('x'.repeat(65_536)), RangeError);
});
