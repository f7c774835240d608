import t from 'tap';
import { cacheKey, CredentialCache, type Auth } from '../../../../daemon/kubelet/provider/cache.ts';
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
  const few = new CredentialCache(createFakeClock());
  for (let index = 0; index < 1000; index += 1) few.set(cacheKey(`${index}`), auth(`${index}`), 1000);
  few.set(cacheKey('0'), auth('again'), 1000);
  few.set(cacheKey('1000'), auth('1000'), 1000);
  t.strictSame(
    ['0', '1', '2', '1000'].map((name) => user(few.get(name))),
    ['again', undefined, '2', '1000'],
  );
  const mebibyte = 'x'.repeat(1_048_576);
  const small = new CredentialCache(createFakeClock());
  for (const name of ['a', 'b', 'c', 'd']) small.set(cacheKey(name), auth(name, mebibyte), 1000);
  t.strictSame(
    ['a', 'b', 'd'].map((name) => user(small.get(name))),
    [undefined, 'b', 'd'],
    'keys and names count too',
  );
  small.set(cacheKey('large'), auth('u', mebibyte.repeat(4)), 1000);
  t.equal(small.size, 0, 'an entry larger than the limit is not cached');
});
