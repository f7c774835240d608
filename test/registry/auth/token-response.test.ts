import t from 'tap';
import { readTokenResponse } from '../../../src/registry/auth/token-response.ts';
import { reveal } from '../../../src/telemetry/secret.ts';

const received = Date.parse('2026-11-20T12:00:00Z');
const at = (seconds: number): string => new Date(received + seconds * 1000).toISOString();

t.test('which token', (t) => {
  const cases: [body: object, token: string][] = [
    [{ token: 'a' }, 'a'],
    [{ access_token: 'b' }, 'b'],
    [{ token: 'a', access_token: 'b' }, 'b'],
    [{ token: 'a', access_token: '' }, 'a'],
    [{ token: 'a', access_token: 5 }, 'a'],
  ];
  for (const [body, token] of cases) t.equal(reveal(readTokenResponse(body, received).token), token);
  t.notMatch(JSON.stringify(readTokenResponse({ token: 'a-secret-token' }, received)), 'a-secret-token');
  t.end();
});

t.test('no token', (t) => {
  for (const body of [
    {},
    null,
    'token',
    [],
    5,
    undefined,
    { token: '' },
    { token: null },
    { token: ['a'] },
  ]) {
    t.throws(() => readTokenResponse(body, received), {
      code: 'invalid-token-response',
      message: 'no token',
    });
  }
  for (const token of ['a b', 'a\r\nX-Header: 1', 'ä', '\u0000']) {
    t.throws(() => readTokenResponse({ token }, received), {
      code: 'invalid-token-response',
      temporary: false,
      message: 'the token cannot be sent in a header',
    });
  }
  t.end();
});

t.test('how long it lasts', (t) => {
  const cases: [name: string, body: object, lifetime: number, base: string, remaining: number][] = [
    ['unsaid', {}, 60, 'received', 60],
    ['said', { expires_in: 300 }, 300, 'received', 300],
    ['too short', { expires_in: 1 }, 60, 'received', 60],
    ['zero', { expires_in: 0 }, 60, 'received', 60],
    ['negative', { expires_in: -5 }, 60, 'received', 60],
    ['text', { expires_in: '300' }, 60, 'received', 60],
    ['absurd', { expires_in: 1e12 }, 86400, 'received', 86400],
    ['issued a while ago', { expires_in: 300, issued_at: at(-100) }, 300, 'issued_at', 200],
    [
      'with an offset',
      { expires_in: 300, issued_at: '2026-11-20T13:58:20.5+02:00' },
      300,
      'issued_at',
      200.5,
    ],
    ['issued in the future', { expires_in: 300, issued_at: at(1000) }, 300, 'issued_at', 300],
    ['a clock far behind', { expires_in: 300, issued_at: '2009-11-10T23:00:00Z' }, 300, 'issued_at', 60],
    ['no instant', { expires_in: 300, issued_at: 'yesterday' }, 300, 'received', 300],
    ['no such day', { expires_in: 300, issued_at: '2026-13-45T00:00:00Z' }, 300, 'received', 300],
    [
      'another notation',
      { expires_in: 300, issued_at: 'Fri, 20 Nov 2026 11:00:00 GMT' },
      300,
      'received',
      300,
    ],
    ['a number', { expires_in: 300, issued_at: 5 }, 300, 'received', 300],
  ];
  for (const [name, body, lifetimeSeconds, base, remaining] of cases) {
    const token = readTokenResponse({ token: 'a', ...body }, received);
    t.match(token, { lifetimeSeconds, base, expiresAt: received + remaining * 1000 }, name);
    t.equal(token.refreshAt, received + remaining * 900, `${name}: renewed at nine tenths`);
  }
  t.end();
});
