import t from 'tap';
import { Failures, isAnswer } from '../../../src/images/memory/failures.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { factsErrorCodes, type FactsErrorCode } from '../../../src/images/facts/facts.ts';

function setUp(options: { readonly maxBytes?: number; readonly random?: () => number } = {}) {
  const { maxBytes = 1_048_576, random = () => 0 } = options;
  const clock = createFakeClock(random);
  const failures = new Failures(maxBytes, clock);
  return {
    clock,
    failures,
    /** Notes a failure of `key`; returns how long it holds. */
    pause: (code: FactsErrorCode, retryAfterMs?: number): number =>
      failures.note('key', error(code, retryAfterMs)).until - clock.monotonic(),
  };
}

function error(
  code: FactsErrorCode,
  retryAfterMs?: number,
): { code: FactsErrorCode; message: string; retryAfterMs?: number } {
  return { code, message: `it is ${code}`, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

t.test('a first failure is cached for a time that depends on its code', async (t) => {
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
    const { failures, clock } = setUp();
    failures.note('key', error(code, retryAfterMs));
    await clock.advance(expected - 1);
    t.equal(failures.holding('key')?.error.code, code, `${code} ${retryAfterMs}`);
    await clock.advance(1);
    t.equal(failures.holding('key'), undefined, `${code} ${retryAfterMs} is over`);
  }
});

t.test('repeated failures double the pause up to a minute', async (t) => {
  const { clock, pause } = setUp();
  const pauses: number[] = [];
  for (let attempt = 0; attempt < 9; attempt += 1) {
    const ms = pause('unavailable');
    pauses.push(ms);
    await clock.advance(ms);
  }
  t.same(pauses, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  await clock.advance(60_000);
  t.equal(pause('unavailable'), 1000, 'an old failure does not count');
});

t.test('success resets the pause', async (t) => {
  const { failures, clock, pause } = setUp();
  pause('unavailable');
  await clock.advance(1000);
  t.equal(pause('unavailable'), 2000);
  failures.forget('key');
  failures.forget('another');
  t.equal(failures.holding('key'), undefined);
  t.equal(pause('unavailable'), 1000);
});

t.test('jitter shortens the pause by at most a quarter, and never Retry-After', async (t) => {
  const pause = (code: FactsErrorCode, retryAfterMs?: number): number =>
    setUp({ random: () => 0.999_999 }).pause(code, retryAfterMs);
  const ms = pause('unavailable');
  t.ok(ms >= 750 && ms < 751, String(ms));
  t.equal(pause('rate-limited', 5000), 5000);
  t.equal(pause('not-found'), 30_000);
});

t.test('failures are bounded by bytes, least recently used first; long messages are truncated', async (t) => {
  const { failures } = setUp({ maxBytes: 4096 });
  for (let index = 0; index < 100; index += 1) {
    failures.note(`key ${index}`, { code: 'not-found', message: 'x'.repeat(10_000) });
    failures.holding('key 0');
    t.ok(failures.bytes <= 4096);
  }
  t.ok(failures.size >= 3);
  t.ok(failures.holding('key 0'), 'used each time');
  t.equal(failures.holding('key 50'), undefined);
  t.equal(failures.holding('key 99')?.error.message.length, 500, 'the newest');
});

t.test('four error codes are definite responses of a registry', async (t) => {
  t.same(factsErrorCodes.filter(isAnswer), ['invalid-reference', 'not-found', 'unauthorized', 'forbidden']);
});
