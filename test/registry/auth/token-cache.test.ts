import t from 'tap';
import { TokenCache, type TokenKey } from '../../../src/registry/auth/token-source.ts';
import type { BearerToken } from '../../../src/registry/auth/token.ts';
import { reveal, secret } from '../../../src/telemetry/secret.ts';
import { noTimers } from '../../support/fake-clock.ts';
import { neverAborted } from '../../support/never-aborted.ts';

const key: TokenKey = {
  registry: 'https://registry.corp',
  realm: 'https://auth.corp/token',
  service: 'registry',
  scopes: ['repository:app:pull'],
  credential: 'ann',
  headers: '',
};

function setUp() {
  const clock = { time: 0, wall: 1_000_000, ...noTimers, now: () => clock.wall, monotonic: () => clock.time };
  const cache = new TokenCache(clock);
  let fetched = 0;
  const fetch = (): Promise<BearerToken> => {
    fetched += 1;
    return Promise.resolve({
      token: secret(`token-${fetched}`),
      refreshAt: clock.wall + 90_000,
    });
  };
  const get = async (changes: Partial<TokenKey> = {}) => {
    const { token, cached } = await cache.get({ ...key, ...changes }, neverAborted, fetch);
    return [reveal(token), cached];
  };
  return { clock, cache, get };
}

t.test('a token is cached until refreshAt by the monotonic clock', async (t) => {
  const { clock, get } = setUp();
  t.strictSame(await get(), ['token-1', false]);
  clock.time = 89_999;
  clock.wall += 10 ** 10;
  t.strictSame(await get(), ['token-1', true]);
  clock.time = 90_000;
  clock.wall = 0;
  t.strictSame(await get(), ['token-2', false]);
});

t.test('tokens differ by each part of their key', async (t) => {
  const { get, cache } = setUp();
  await get();
  const others: Partial<TokenKey>[] = [
    { registry: 'https://other.corp' },
    { registry: 'http://registry.corp' },
    { registry: 'https://registry.corp:5000' },
    { realm: 'https://auth.corp/other' },
    { service: 'other' },
    { scopes: ['repository:other:pull'] },
    { scopes: ['repository:app:pull', 'repository:other:pull'] },
    { credential: 'bea' },
    { credential: 'anonymous' },
    { headers: 'some' },
  ];
  for (const [index, changes] of others.entries()) {
    t.strictSame(await get(changes), [`token-${index + 2}`, false], JSON.stringify(changes));
  }
  t.strictSame(await get(), ['token-1', true]);
  cache.clear();
  t.strictSame(await get(), [`token-${others.length + 2}`, false]);
});

t.test('a rejected token is removed, a newer one is not', async (t) => {
  const { cache, get } = setUp();
  await get();
  const first = (await cache.get(key, neverAborted, () => Promise.reject(new Error('not called')))).token;
  cache.forget(key, first);
  t.strictSame(await get(), ['token-2', false]);
  cache.forget(key, first);
  t.strictSame(await get(), ['token-2', true]);
});

t.test('concurrent callers share one exchange, which is aborted with the last caller', async (t) => {
  const { cache } = setUp();
  const given: AbortSignal[] = [];
  const never = (signal: AbortSignal): Promise<BearerToken> => {
    given.push(signal);
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('ended'))));
  };
  const [one, two] = [new AbortController(), new AbortController()];
  const first = cache.get(key, one.signal, never);
  const second = cache.get(key, two.signal, never);
  one.abort(new Error('first gives up'));
  await t.rejects(first, { message: 'first gives up' });
  t.equal(given[0]?.aborted, false);
  two.abort(new Error('second gives up'));
  await t.rejects(second, { message: 'second gives up' });
  t.equal(given[0]?.aborted, true);
  t.equal(given.length, 1);
  await t.rejects(cache.get(key, one.signal, never), { message: 'first gives up' });
  t.equal(given.length, 1, 'an aborted caller starts no exchange');
});

t.test('the least recently used token is removed first', async (t) => {
  const { get } = setUp();
  await get();
  for (let n = 0; n < 1000; n += 1) await get({ credential: String(n) });
  t.strictSame((await get({ credential: '0' }))[1], true);
  t.strictSame((await get())[1], false);
});
