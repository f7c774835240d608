import t from 'tap';
import { CircuitBreaker } from '../../../src/registry/net/circuit-breaker.ts';
import { noTimers } from '../../support/fake-clock.ts';

function setUp() {
  const clock = { time: 1000, ...noTimers, now: () => 0, monotonic: () => clock.time };
  const breaker = new CircuitBreaker(clock, { threshold: 3, firstPauseMs: 100, maxPauseMs: 300 });
  const fail = (times: number) => {
    for (let n = 0; n < times; n += 1) breaker.failed('host', 'refused');
  };
  return { clock, breaker, fail };
}

t.test('the circuit opens after three failures in a row', async (t) => {
  const { breaker, fail } = setUp();
  fail(2);
  t.equal(breaker.admit('host'), 0);
  breaker.succeeded('host');
  fail(2);
  t.equal(breaker.admit('host'), 0, 'a success resets the count');
  fail(1);
  t.equal(breaker.admit('host'), 100);
  t.equal(breaker.admit('other'), 0);
});

t.test('after the pause one trial is admitted, and its failure doubles the pause', async (t) => {
  const { breaker, clock, fail } = setUp();
  fail(3);
  for (const [pause, next] of [
    [100, 200],
    [200, 300],
    [300, 300],
  ] as const) {
    clock.time += pause - 1;
    t.equal(breaker.admit('host'), 1);
    clock.time += 1;
    t.equal(breaker.admit('host'), 0, 'the trial');
    t.equal(breaker.admit('host'), pause, 'others wait');
    fail(1);
    t.equal(breaker.admit('host'), next);
  }
});

t.test('a successful trial closes the circuit', async (t) => {
  const { breaker, clock, fail } = setUp();
  fail(3);
  clock.time += 100;
  t.equal(breaker.admit('host'), 0);
  breaker.succeeded('host');
  t.equal(breaker.admit('host'), 0);
  t.equal(breaker.admit('host'), 0);
  fail(2);
  t.equal(breaker.admit('host'), 0);
});

t.test('after an inconclusive trial the next one is admitted', async (t) => {
  const { breaker, clock, fail } = setUp();
  fail(3);
  clock.time += 100;
  t.equal(breaker.admit('host'), 0);
  breaker.inconclusive('host');
  t.equal(breaker.admit('host'), 0);
  breaker.inconclusive('unknown');
});

t.test('responses to older requests do not change an open circuit', async (t) => {
  const { breaker, fail } = setUp();
  fail(3);
  fail(5);
  t.equal(breaker.admit('host'), 100);
  breaker.succeeded('host');
  t.equal(breaker.admit('host'), 100);
});

t.test('Retry-After opens the circuit for its time', async (t) => {
  const { breaker, clock } = setUp();
  breaker.pause('host', 500, '503');
  breaker.pause('host', 50, '503');
  t.equal(breaker.admit('host'), 500, 'the longer one applies');
  breaker.succeeded('host');
  t.equal(breaker.admit('host'), 500);
  clock.time += 500;
  t.equal(breaker.admit('host'), 0);
  t.equal(breaker.admit('host'), 1, 'one trial');
  breaker.succeeded('host');
  t.equal(breaker.admit('host'), 0);
});

t.test('failures and pauses of three repositories apply to the host', async (t) => {
  const { breaker, clock } = setUp();
  for (let n = 0; n < 9; n += 1) breaker.failed('host', 'refused', 'one');
  t.equal(breaker.admit('host'), 0);
  t.equal(breaker.admit('host one'), 100);
  for (const repository of ['two', 'three']) breaker.failed('host', 'refused', repository);
  t.equal(breaker.admit('host'), 100);
  clock.time += 100;
  t.equal(breaker.admit('host'), 0, 'the trial');
  breaker.pause('host', 500, '503', 'one');
  t.equal(breaker.admit('host'), 500, 'the trial counts for the host');
  clock.time += 500;
  breaker.succeeded('host');
  for (const repository of ['one', 'two']) breaker.pause('host', 1000, '503', repository);
  t.equal(breaker.admit('host'), 0);
  t.equal(breaker.admit('host two'), 1000);
  breaker.pause('host', 1000, '503', 'three');
  t.equal(breaker.admit('host'), 1000);
});

t.test('default: five failures, five seconds', async (t) => {
  const clock = { ...noTimers, now: () => 0, monotonic: () => 0 };
  const breaker = new CircuitBreaker(clock);
  for (let n = 0; n < 4; n += 1) breaker.failed('host', 'refused');
  t.equal(breaker.admit('host'), 0);
  breaker.failed('host', 'refused');
  t.equal(breaker.admit('host'), 5000);
});

t.test('memory is bounded: the oldest hosts are forgotten', async (t) => {
  const { breaker, fail } = setUp();
  fail(3);
  for (let n = 0; n < 4096; n += 1) breaker.failed(`host-${n}`, 'refused');
  t.equal(breaker.admit('host'), 0);
});
