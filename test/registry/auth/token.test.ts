/** Tokens: requests to a token server, their cache, and responses. `authenticator.test.ts` covers their use. */
import t from 'tap';
import { basic, readTokenResponse } from '../../../src/registry/auth/token.ts';
import { createTokenSource } from '../../../src/registry/auth/token-source.ts';
import type { JsonObject } from '../../../src/http/json.ts';
import { like } from '../../support/like.ts';
import { originEndpoint } from '../../../src/registry/endpoints/endpoint.ts';
import type { GuardedSend } from '../../../src/registry/net/guarded-client.ts';
import { reveal, secret } from '../../../src/telemetry/secret.ts';
import { noTimers } from '../../support/fake-clock.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { credential } from '../../support/registry/client.ts';

const tls = { ca: [], client: [{ certificate: 'PEM', key: secret('key-of-the-node') }], skipVerify: false };

interface Key {
  readonly base: string;
  readonly realm: string;
  readonly service: string;
  readonly scopes: readonly string[];
  readonly user: string | undefined;
  readonly password: string;
  readonly header: string | undefined;
}

const key: Key = {
  base: 'https://registry.corp',
  realm: 'https://auth.corp/token',
  service: 'registry',
  scopes: ['repository:app:pull'],
  user: 'ann',
  password: 'pass:wörd & more',
  header: undefined,
};

/**
 * A source whose token server answers with `token-1`, `token-2` and so on, for 100 s each.
 * @param statuses of its responses in turn, then 200
 */
function setUp(answer?: (signal: AbortSignal) => Promise<never>, statuses: number[] = []) {
  const clock = { time: 0, wall: 1_000_000, ...noTimers, now: () => clock.wall, monotonic: () => clock.time };
  const seen: Parameters<GuardedSend>[0][] = [];
  const send: GuardedSend = (step, _request, signal) => {
    const status = statuses[seen.length] ?? 200;
    seen.push(step);
    const text = status === 200 ? `{"token":"token-${seen.length}","expires_in":100}` : 'error page';
    const response = { status, headers: { 'retry-after': ['7'] }, remoteAddress: '', moved: false };
    return answer?.(signal) ?? Promise.resolve({ ...response, body: Buffer.from(text), url: step.url });
  };
  const source = createTokenSource(send, clock);
  const granted = (changes: Partial<Key> = {}, signal = neverAborted) => {
    const { base, realm, service, scopes, user, password, header } = { ...key, ...changes };
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
    const usable = user === undefined ? undefined : credential(user, password, { id: user });
    return source.get(request, scheme, usable, signal);
  };
  const get = async (changes: Partial<Key> = {}) => {
    const { token, cached } = await granted(changes);
    return [reveal(token), cached];
  };
  return { clock, source, granted, get, seen };
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

t.test('only a token server of the registry itself gets its client certificate and its reach', async (t) => {
  const { granted, seen } = setUp();
  await granted({ realm: `${key.base}/token` });
  await granted();
  t.strictSame(
    seen.map((step) => step.tls.client.length),
    [1, 0],
  );
  t.notSame(seen[0]?.reach, seen[1]?.reach);
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
  const { granted, seen } = setUp((signal) => {
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
  t.equal(seen.length, 1, 'an aborted caller starts no exchange');
});

t.test('the least recently used token is removed first', async (t) => {
  const { get } = setUp();
  await get();
  for (let n = 0; n < 1000; n += 1) await get({ service: String(n) });
  t.strictSame((await get({ service: '0' }))[1], true);
  t.strictSame((await get())[1], false);
});

const scopes = ['repository:a:pull', 'repository:b/c:pull'];
const asked = { realm: 'https://auth.corp/token?tenant=7', service: 'registry corp', scopes };

t.test('an anonymous request is a GET that keeps the query of the realm', async (t) => {
  const { seen, granted } = setUp();
  await granted({ ...asked, user: undefined });
  const query = 'scope=repository%3Aa%3Apull&scope=repository%3Ab%2Fc%3Apull';
  t.equal(seen[0]?.url.href, `${asked.realm}&service=registry+corp&${query}`);
  like(t, seen, [{ method: 'GET', headers: {}, ownHeaders: { authorization: undefined } }]);
});

t.test('an empty service and no scopes are not sent', async (t) => {
  const { seen, granted } = setUp(undefined, [404]);
  await granted({ realm: asked.realm, service: '', scopes: [] });
  t.strictSame(
    [...new URLSearchParams(seen[0]?.body)].map(([key]) => key),
    ['grant_type', 'username', 'password', 'client_id'],
  );
  t.equal(seen[1]?.url.href, asked.realm);
});

t.test('a password is sent in the form, by Basic only if the server does not know the form', async (t) => {
  const { seen, granted } = setUp(undefined, [404]);
  await granted(asked);
  t.equal(seen[0]?.url.href, asked.realm);
  like(t, seen[0], {
    method: 'POST',
    headers: { 'content-type': /^application\/x-www-form-urlencoded/ },
    ownHeaders: { authorization: undefined },
  });
  t.strictSame(Object.fromEntries(new URLSearchParams(seen[0]?.body)), {
    grant_type: 'password',
    username: 'ann',
    password: key.password,
    service: 'registry corp',
    scope: 'repository:a:pull repository:b/c:pull',
    client_id: 'archwright',
  });
  const header = basic({ username: 'ann', password: secret(key.password) });
  like(t, seen[1], { method: 'GET', headers: {}, ownHeaders: { authorization: header } });
  t.equal(Buffer.from(header.slice(6), 'base64').toString(), `ann:${key.password}`);
});

t.test('an identity token is sent as a refresh token, and after a 405 not by Basic', async (t) => {
  const { seen, granted } = setUp(undefined, [405]);
  const identity = granted({ ...asked, user: '', password: 'identity-token' });
  await t.rejects(identity, { name: 'TokenRefused', retryAfter: '7' });
  const form = new URLSearchParams(seen[0]?.body);
  t.equal(form.get('grant_type'), 'refresh_token');
  t.equal(form.get('refresh_token'), 'identity-token');
  t.equal(seen.length, 1);
});

t.test('access_token is preferred to token', async (t) => {
  const cases: [body: JsonObject, token: string][] = [
    [{ token: 'a' }, 'a'],
    [{ access_token: 'b' }, 'b'],
    [{ token: 'a', access_token: 'b' }, 'b'],
    [{ token: 'a', access_token: '' }, 'a'],
    [{ token: 'a', access_token: 5 }, 'a'],
  ];
  for (const [body, token] of cases) t.equal(reveal(readTokenResponse(body).token), token);
  t.notMatch(JSON.stringify(readTokenResponse({ token: 'a-secret-token' })), 'a-secret-token');
});

t.test('a response without a valid token is refused', async (t) => {
  const name = 'InvalidTokenResponse';
  for (const body of [{}, { token: '' }, { token: null }, { token: ['a'] }])
    t.throws(() => readTokenResponse(body), { name, message: 'no token' });
  const message = 'the token cannot be sent in a header';
  for (const token of ['a b', 'a\r\nX-Header: 1', 'ä', '\u0000'])
    t.throws(() => readTokenResponse({ token }), { name, message });
});

t.test('the lifetime follows expires_in, within limits', async (t) => {
  const cases: [name: string, body: object, remaining: number][] = [
    ['absent', {}, 60],
    ['given', { expires_in: 300 }, 300],
    ['too short', { expires_in: 1 }, 60],
    ['zero', { expires_in: 0 }, 60],
    ['negative', { expires_in: -5 }, 60],
    ['text', { expires_in: '300' }, 60],
    ['absurd', { expires_in: 1e12 }, 86400],
  ];
  for (const [name, body, remaining] of cases) {
    const { lastsMs } = readTokenResponse({ token: 'a', ...body });
    t.equal(lastsMs, remaining * 900, `${name}: renewed at nine tenths`);
  }
});
