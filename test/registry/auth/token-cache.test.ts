import t from 'tap';
import { TokenSource } from '../../../src/registry/auth/token-source.ts';
import { originEndpoint } from '../../../src/registry/endpoints/endpoint.ts';
import type { GuardedClient } from '../../../src/registry/net/guarded-client.ts';
import { reveal, secret } from '../../../src/telemetry/secret.ts';
import { noTimers } from '../../support/fake-clock.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { credential } from '../../support/registry/client.ts';

const tls = { ca: [], client: [], skipVerify: false };

interface Key {
  readonly base: string;
  readonly realm: string;
  readonly service: string;
  readonly scopes: readonly string[];
  readonly user: string | undefined;
  readonly header: string | undefined;
}

const key: Key = {
  base: 'https://registry.corp',
  realm: 'https://auth.corp/token',
  service: 'registry',
  scopes: ['repository:app:pull'],
  user: 'ann',
  header: undefined,
};

/** A source whose token server answers with `token-1`, `token-2` and so on, for 100 s each. */
function setUp(answer?: (signal: AbortSignal) => Promise<never>) {
  const clock = { time: 0, wall: 1_000_000, ...noTimers, now: () => clock.wall, monotonic: () => clock.time };
  let fetched = 0;
  const send: GuardedClient['send'] = ({ url }, _request, signal) => {
    fetched += 1;
    const body = Buffer.from(JSON.stringify({ token: `token-${fetched}`, expires_in: 100 }));
    return (
      answer?.(signal) ??
      Promise.resolve({ status: 200, headers: {}, remoteAddress: '', body, url, moved: false })
    );
  };
  const source = new TokenSource({ send }, clock);
  const granted = (changes: Partial<Key> = {}, signal = neverAborted) => {
    const { base, realm, service, scopes, user, header } = { ...key, ...changes };
    const tokenHeaders = header === undefined ? [] : [{ name: 'x-key', value: secret(header) }];
    const request = {
      method: 'GET',
      url: new URL(`${base}/v2/app/manifests/v1`),
      purpose: 'manifest',
      accept: '*/*',
      maxBytes: 1,
      endpoint: { ...originEndpoint('registry.corp', tls), tokenHeaders },
      repository: 'app',
      credential: undefined,
      trace: undefined,
    } as const;
    const scheme = { scheme: 'bearer', realm: new URL(realm), service, scopes } as const;
    const usable = user === undefined ? undefined : credential(user, 'password', { id: user });
    return source.get(request, scheme, usable, signal);
  };
  const get = async (changes: Partial<Key> = {}) => {
    const { token, cached } = await granted(changes);
    return [reveal(token), cached];
  };
  return { clock, source, granted, get, fetched: () => fetched };
}

t.test('a token is cached for nine tenths of its life by the monotonic clock', async (t) => {
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
  const { get } = setUp();
  await get();
  const others: Partial<Key>[] = [
    { base: 'https://other.corp' },
    { base: 'http://registry.corp' },
    { base: 'https://registry.corp:5000' },
    { realm: 'https://auth.corp/other' },
    { service: 'other' },
    { scopes: ['repository:other:pull'] },
    { scopes: ['repository:app:pull', 'repository:other:pull'] },
    { user: 'bea' },
    { user: undefined },
    { header: 'some' },
    { header: 'other' },
  ];
  for (const [index, changes] of others.entries()) {
    t.strictSame(await get(changes), [`token-${index + 2}`, false], JSON.stringify(changes));
  }
  t.strictSame(await get(), ['token-1', true]);
});

t.test('a rejected token is removed, a newer one is not', async (t) => {
  const { source, granted, get } = setUp();
  const first = await granted();
  source.forget(first);
  t.strictSame(await get(), ['token-2', false]);
  source.forget(first);
  t.strictSame(await get(), ['token-2', true]);
});

t.test('concurrent callers share one exchange, which is aborted with the last caller', async (t) => {
  const given: AbortSignal[] = [];
  const { granted, fetched } = setUp((signal) => {
    given.push(signal);
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('ended'))));
  });
  const [one, two] = [new AbortController(), new AbortController()];
  const first = granted({}, one.signal);
  const second = granted({}, two.signal);
  one.abort(new Error('first gives up'));
  await t.rejects(first, { message: 'first gives up' });
  t.equal(given[0]?.aborted, false);
  two.abort(new Error('second gives up'));
  await t.rejects(second, { message: 'second gives up' });
  t.equal(given[0]?.aborted, true);
  await t.rejects(granted({}, one.signal), { message: 'first gives up' });
  t.equal(fetched(), 1, 'an aborted caller starts no exchange');
});

t.test('the least recently used token is removed first', async (t) => {
  const { get } = setUp();
  await get();
  for (let n = 0; n < 1000; n += 1) await get({ service: String(n) });
  t.strictSame((await get({ service: '0' }))[1], true);
  t.strictSame((await get())[1], false);
});
