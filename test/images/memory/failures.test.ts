import t from 'tap';
import { createFailures, isAnswer } from '../../../src/images/memory/failures.ts';
import { factsErrorCodes, type FactsErrorCode } from '../../../src/images/facts/facts.ts';

const mebibyte = 1_048_576;

function error(
  code: FactsErrorCode,
  retryAfterMs?: number,
): { code: FactsErrorCode; message: string; retryAfterMs?: number } {
  return { code, message: `it is ${code}`, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

t.test('how long a first failure holds', async (t) => {
  const cases: [FactsErrorCode, number | undefined, number][] = [
    ['not-found', undefined, 30_000],
    ['unauthorized', undefined, 30_000],
    ['forbidden', undefined, 30_000],
    ['invalid-reference', undefined, 30_000],
    ['forbidden', 90_000, 90_000],
    ['forbidden', 10, 30_000],
    ['unavailable', undefined, 1000],
    ['timeout', undefined, 1000],
    ['rate-limited', undefined, 1000],
    ['rate-limited', 20_000, 20_000],
    ['rate-limited', 6 * 3_600_000, 3_600_000],
    ['rate-limited', Number.MAX_VALUE, 3_600_000],
    ['rate-limited', -5000, 1000],
    ['rate-limited', 0, 1000],
    ['too-large', undefined, 1000],
    ['digest-mismatch', undefined, 1000],
    ['unsupported-media-type', undefined, 1000],
    ['not-an-image', undefined, 1000],
  ];
  for (const [code, retryAfterMs, expected] of cases) {
    const failures = createFailures(mebibyte, () => 0);
    failures.note('key', error(code, retryAfterMs), 100);
    t.equal(failures.holding('key', 100 + expected - 1)?.error.code, code, `${code} ${retryAfterMs}`);
    t.equal(failures.holding('key', 100 + expected), undefined, `${code} ${retryAfterMs} is over`);
  }
});

t.test('trouble that goes on doubles the pause up to a minute', async (t) => {
  const failures = createFailures(mebibyte, () => 0);
  let now = 0;
  const pauses: number[] = [];
  for (let attempt = 0; attempt < 9; attempt += 1) {
    const { until } = failures.note('key', error('unavailable'), now);
    pauses.push(until - now);
    now = until;
  }
  t.same(pauses, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  t.equal(
    failures.note('key', error('unavailable'), now + 60_000).until - now,
    61_000,
    'long ago starts anew',
  );
});

t.test('success starts the pause anew', async (t) => {
  const failures = createFailures(mebibyte, () => 0);
  failures.note('key', error('unavailable'), 0);
  failures.note('key', error('unavailable'), 1000);
  failures.forget('key');
  failures.forget('another');
  t.equal(failures.holding('key', 1001), undefined);
  t.equal(failures.note('key', error('unavailable'), 2000).until, 3000);
});

t.test('jitter takes off at most a quarter, and nothing of what a registry asks for', async (t) => {
  const failures = createFailures(mebibyte, () => 0.999_999);
  const { until } = failures.note('a', error('unavailable'), 0);
  t.ok(until >= 750 && until < 751, String(until));
  t.equal(failures.note('b', error('rate-limited', 5000), 0).until, 5000);
  t.equal(failures.note('c', error('not-found'), 0).until, 30_000);
});

t.test('keys do not touch each other', async (t) => {
  const failures = createFailures(mebibyte, () => 0);
  failures.note('a', error('not-found'), 0);
  t.equal(failures.holding('b', 1), undefined);
  t.equal(failures.size, 1);
});

t.test('bounded by bytes: the least recently used leave first, long messages are cut', async (t) => {
  const failures = createFailures(4096, () => 0);
  for (let index = 0; index < 100; index += 1) {
    failures.note(`key ${index}`, { code: 'not-found', message: 'x'.repeat(10_000) }, 0);
    failures.holding('key 0', 1);
    t.ok(failures.bytes <= 4096);
  }
  t.ok(failures.size >= 3);
  t.ok(failures.holding('key 0', 1), 'used all the time');
  t.ok(failures.holding('key 99', 1), 'the newest');
  t.equal(failures.holding('key 50', 1), undefined);
  t.equal(failures.holding('key 99', 1)?.error.message.length, 500);
});

t.test('which errors are answers rather than trouble', async (t) => {
  t.same(factsErrorCodes.filter(isAnswer), ['invalid-reference', 'not-found', 'unauthorized', 'forbidden']);
});
