/** Requests to a token server and its responses. `authenticator.test.ts` covers their use. */
import t from 'tap';
import { secret, reveal } from '../../../src/telemetry/secret.ts';
import {
  fetchToken,
  basic,
  readTokenResponse,
  type TokenExchange,
} from '../../../src/registry/auth/token.ts';
import { like } from '../../support/like.ts';

const ann = { username: 'ann', password: secret('pass:wörd & more') };
const realm = new URL('https://auth.corp/token?tenant=7');
const tokenRequest = {
  realm,
  service: 'registry corp',
  scopes: ['repository:a:pull', 'repository:b/c:pull'],
};

function server(...statuses: number[]) {
  const seen: TokenExchange[] = [];
  const send = (exchange: TokenExchange): ReturnType<Parameters<typeof fetchToken>[1]> => {
    const status = statuses[seen.length] ?? 500;
    seen.push(exchange);
    const body = Buffer.from(status === 200 ? '{"token":"token-text","expires_in":300}' : 'error page');
    return Promise.resolve({ status, headers: { 'retry-after': ['7'] }, body });
  };
  return { seen, send };
}

t.test('an anonymous request is a GET that keeps the query of the realm', async (t) => {
  const { seen, send } = server(200);
  const token = await fetchToken(tokenRequest, send, () => 1000);
  like(t, token, { lastsMs: 270_000 });
  const scopes = 'scope=repository%3Aa%3Apull&scope=repository%3Ab%2Fc%3Apull';
  // tap takes any two URLs for the same.
  t.strictSame(JSON.parse(JSON.stringify(seen)), [
    {
      method: 'GET',
      url: `https://auth.corp/token?tenant=7&service=registry+corp&${scopes}`,
      headers: {},
    },
  ]);
  t.equal(realm.href, 'https://auth.corp/token?tenant=7', 'the realm is unchanged');
});

t.test('an empty service and no scopes are not sent', async (t) => {
  const { seen, send } = server(404, 200);
  await fetchToken({ realm, service: '', scopes: [], credential: ann }, send, () => 0);
  t.strictSame(
    [...new URLSearchParams(seen[0]?.body)].map(([key]) => key),
    ['grant_type', 'username', 'password', 'client_id'],
  );
  t.equal(seen[1]?.url.href, realm.href);
});

t.test('a password is sent only in the form', async (t) => {
  const { seen, send } = server(200);
  await fetchToken({ ...tokenRequest, credential: ann }, send, () => 0);
  const [exchange] = seen;
  t.equal(exchange?.method, 'POST');
  t.equal(exchange?.url.href, realm.href);
  like(t, exchange?.headers, { 'content-type': /^application\/x-www-form-urlencoded/ });
  t.strictSame(Object.fromEntries(new URLSearchParams(exchange?.body)), {
    grant_type: 'password',
    username: 'ann',
    password: 'pass:wörd & more',
    service: 'registry corp',
    scope: 'repository:a:pull repository:b/c:pull',
    client_id: 'archwright',
  });
  t.equal(Buffer.from(basic(ann).slice(6), 'base64').toString(), 'ann:pass:wörd & more');
});

t.test('an identity token is sent as a refresh token', async (t) => {
  const identity = { username: '', password: secret('identity-token') };
  const { seen, send } = server(200);
  await fetchToken({ ...tokenRequest, credential: identity }, send, () => 0);
  const form = new URLSearchParams(seen[0]?.body);
  t.equal(form.get('grant_type'), 'refresh_token');
  t.equal(form.get('refresh_token'), 'identity-token');
  const old = server(405, 200);
  await t.rejects(
    fetchToken({ ...tokenRequest, credential: identity }, old.send, () => 0),
    { name: 'TokenRefused', retryAfter: '7' },
  );
  t.equal(old.seen.length, 1, 'after a 405 it is not sent by Basic');
});

const received = Date.parse('2026-11-20T12:00:00Z');
const at = (seconds: number): string => new Date(received + seconds * 1000).toISOString();

t.test('access_token is preferred to token', async (t) => {
  const cases: [body: object, token: string][] = [
    [{ token: 'a' }, 'a'],
    [{ access_token: 'b' }, 'b'],
    [{ token: 'a', access_token: 'b' }, 'b'],
    [{ token: 'a', access_token: '' }, 'a'],
    [{ token: 'a', access_token: 5 }, 'a'],
  ];
  for (const [body, token] of cases) t.equal(reveal(readTokenResponse(body, received).token), token);
  t.notMatch(JSON.stringify(readTokenResponse({ token: 'a-secret-token' }, received)), 'a-secret-token');
});

t.test('a response without a valid token is refused', async (t) => {
  const name = 'InvalidTokenResponse';
  const others = [{ token: '' }, { token: null }, { token: ['a'] }];
  for (const body of [{}, null, 'token', [], 5, undefined, ...others]) {
    t.throws(() => readTokenResponse(body, received), { name, message: 'no token' });
  }
  for (const token of ['a b', 'a\r\nX-Header: 1', 'ä', '\u0000']) {
    t.throws(() => readTokenResponse({ token }, received), {
      name,
      message: 'the token cannot be sent in a header',
    });
  }
});

t.test('the lifetime follows expires_in and issued_at, within limits', async (t) => {
  const issued = (at: unknown) => ({ expires_in: 300, issued_at: at });
  const cases: [name: string, body: object, remaining: number][] = [
    ['absent', {}, 60],
    ['given', { expires_in: 300 }, 300],
    ['too short', { expires_in: 1 }, 60],
    ['zero', { expires_in: 0 }, 60],
    ['negative', { expires_in: -5 }, 60],
    ['text', { expires_in: '300' }, 60],
    ['absurd', { expires_in: 1e12 }, 86400],
    ['issued a while ago', issued(at(-100)), 200],
    ['with an offset', issued('2026-11-20T13:58:20.5+02:00'), 200.5],
    ['issued in the future', issued(at(1000)), 300],
    ['a clock far behind', issued('2009-11-10T23:00:00Z'), 60],
    ['no instant', issued('yesterday'), 300],
    ['no such day', issued('2026-13-45T00:00:00Z'), 300],
    ['another notation', issued('Fri, 20 Nov 2026 11:00:00 GMT'), 300],
    ['a number', issued(5), 300],
  ];
  for (const [name, body, remaining] of cases) {
    const token = readTokenResponse({ token: 'a', ...body }, received);
    t.equal(token.lastsMs, remaining * 900, `${name}: renewed at nine tenths`);
  }
});
