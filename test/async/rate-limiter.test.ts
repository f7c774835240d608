import t from 'tap';
import { createRateLimiter, RateLimiters } from '../../src/async/rate-limiter.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { neverAborted } from '../support/never-aborted.ts';

void t.test('a burst passes at once, then callers pass in order at the rate', async (t) => {
  const time = createFakeClock();
  const limiter = createRateLimiter({ perSecond: 10, burst: 3, clock: time });
  const passed: number[] = [];
  for (let i = 0; i < 2000; i++) void limiter.take(neverAborted).then(() => passed.push(i));
  await time.advance(0);
  t.strictSame(passed, [0, 1, 2]);
  await time.advance(99);
  t.equal(passed.length, 3);
  await time.advance(1);
  t.equal(passed.length, 4);
  await time.advance(10_000);
  t.equal(passed.length, 104);
  t.strictSame(
    passed,
    Array.from(passed, (_, index) => index),
  );
  const idle = createRateLimiter({ perSecond: 10, burst: 3, clock: time });
  await time.advance(3_600_000);
  let count = 0;
  for (let i = 0; i < 5; i++) void idle.take(neverAborted).then(() => count++);
  await time.advance(0);
  t.equal(count, 3, 'after a long pause only a burst passes');
});

void t.test('each key has its own bucket; the least recently used one is forgotten', async (t) => {
  const limiters = new RateLimiters({ perSecond: 1, burst: 1, clock: createFakeClock() }, 2);
  const [a, b] = [limiters.get('a'), limiters.get('b')];
  t.not(a, b);
  t.equal(limiters.get('a'), a);
  limiters.get('c');
  t.not(limiters.get('b'), b);
});

void t.test('an aborted caller leaves the queue without using a place', async (t) => {
  const time = createFakeClock();
  const limiter = createRateLimiter({ perSecond: 1, burst: 1, clock: time });
  await limiter.take(neverAborted);
  const passed: string[] = [];
  const aborts = { a: new AbortController(), b: new AbortController() };
  const a = limiter.take(aborts.a.signal);
  const b = limiter.take(aborts.b.signal);
  void limiter.take(neverAborted).then(() => passed.push('c'));
  void limiter.take(neverAborted).then(() => passed.push('d'));
  const ends = [t.rejects(a, { message: 'a went' }), t.rejects(b, { message: 'b went' })];
  aborts.b.abort(new Error('b went'));
  await time.advance(500);
  t.strictSame(passed, [], 'after an abort no caller overtakes another');
  aborts.a.abort(new Error('a went'));
  await Promise.all(ends);
  await time.advance(500);
  t.strictSame(passed, ['c']);
  await time.advance(1000);
  t.strictSame(passed, ['c', 'd']);
  await t.rejects(limiter.take(AbortSignal.abort(new Error('before'))), { message: 'before' });
  t.equal(time.pending, 0);
});

void t.test('a pause delays all callers; the longest applies', async (t) => {
  const time = createFakeClock();
  const limiter = createRateLimiter({ perSecond: 100, burst: 10, clock: time });
  limiter.pause(5000);
  limiter.pause(1000);
  let passed = 0;
  for (let i = 0; i < 3; i++) void limiter.take(neverAborted).then(() => passed++);
  await time.advance(4999);
  t.equal(passed, 0);
  await time.advance(1);
  t.equal(passed, 3);
});
