import t from 'tap';
import { maxRetryAfterMs, minRetryAfterMs, retryAfter, isLoginHeader } from '../../src/http/headers.ts';

const now = Date.parse('2026-11-21T08:00:00Z');

t.test('Retry-After is seconds or a date, within bounds', async (t) => {
  const cases: readonly (readonly [string | undefined, number | undefined])[] = [
    [undefined, undefined],
    ['120', 120_000],
    [' 5 ', 5000],
    ['0', minRetryAfterMs],
    ['99999999999999999999', maxRetryAfterMs],
    ['86400', maxRetryAfterMs],
    ['Sat, 21 Nov 2026 08:01:00 GMT', 60_000],
    ['Fri, 20 Nov 2026 08:00:00 GMT', minRetryAfterMs],
    ['Thu, 01 Jan 1970 00:00:00 GMT', minRetryAfterMs],
    ['Fri, 31 Dec 9999 23:59:59 GMT', maxRetryAfterMs],
    ['', undefined],
    ['soon', undefined],
    ['-1', undefined],
    ['12.5', undefined],
    ['NaN', undefined],
    ['Infinity', undefined],
  ];
  for (const [value, expected] of cases) t.equal(retryAfter(value, now), expected, String(value));
});

t.test('headers with credentials are recognized in any spelling', async (t) => {
  for (const name of ['authorization', 'Authorization', 'Proxy-Authorization', 'COOKIE', ' cookie ']) {
    t.ok(isLoginHeader(name), name);
  }
  for (const name of ['', 'x-authorization', 'authorization2', 'cookies', 'x-api-key']) {
    t.notOk(isLoginHeader(name), name);
  }
});
