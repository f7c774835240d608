import t from 'tap';
import { createResponseTime, defaultResponseTimeLimits } from '../../../src/fleet/lookup/response-time.ts';

/** A generator of numbers from 0 up to 1 that is the same in every run. */
function seeded(): () => number {
  let state = 42;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

t.test('stays between its limits', (t) => {
  const time = createResponseTime();
  t.ok(time.hedgeAfterMs() >= defaultResponseTimeLimits.floorMs);
  for (let count = 0; count < 1000; count += 1) time.observe(1);
  t.equal(time.hedgeAfterMs(), defaultResponseTimeLimits.floorMs);
  for (let count = 0; count < 1000; count += 1) time.observe(60_000);
  t.equal(time.hedgeAfterMs(), defaultResponseTimeLimits.capMs);
  t.end();
});

t.test('rests where about one answer in twenty is slower', (t) => {
  const time = createResponseTime({ floorMs: 1, capMs: 100_000 });
  const random = seeded();
  let slower = 0;
  const rounds = 20_000;
  for (let count = 0; count < rounds; count += 1) {
    const duration = 100 + 1000 * random();
    if (duration > time.hedgeAfterMs()) slower += 1;
    time.observe(duration);
  }
  t.ok(slower / rounds > 0.02 && slower / rounds < 0.08, `${slower} of ${rounds}`);
  t.end();
});

t.test('one slow answer does not change much', (t) => {
  const time = createResponseTime({ floorMs: 100, capMs: 10_000 });
  for (let count = 0; count < 500; count += 1) time.observe(200);
  const before = time.hedgeAfterMs();
  time.observe(9000);
  t.ok(time.hedgeAfterMs() < before * 1.3);
  t.end();
});

t.test('starts within narrow limits too', (t) => {
  t.equal(createResponseTime({ floorMs: 5, capMs: 20 }).hedgeAfterMs(), 20);
  t.end();
});
