import t from 'tap';
import { TransportError, type TransportFailure } from '../../../src/http/transport-error.ts';
import { CircuitBreaker, CircuitOpen, type Route } from '../../../src/registry/net/circuit-breaker.ts';

function setUp() {
  const clock = { time: 1000, monotonic: () => clock.time };
  const breaker = new CircuitBreaker(clock);
  const to = (prefix: string, changes: Partial<Route> = {}): Route => {
    return {
      where: 'host',
      prefix,
      host: 'host',
      registry: 'host',
      account: 'host as ann',
      isToken: false,
      ...changes,
    };
  };
  /** Milliseconds until the next try, as far as known; 0: the request is admitted. */
  const wait = (prefix: string, changes?: Partial<Route>): number => {
    try {
      breaker.admit(to(prefix, changes));
      return 0;
    } catch (error) {
      if (error instanceof CircuitOpen) return error.retryAfterMs ?? Number.POSITIVE_INFINITY;
      throw error;
    }
  };
  const answer = (prefix: string, status: number, retryAfterMs?: number) =>
    breaker.answered(to(prefix), status, retryAfterMs);
  const fail = (prefix: string, times = 1) => {
    for (let n = 0; n < times; n += 1) answer(prefix, 500);
  };
  return { clock, breaker, to, wait, answer, fail };
}

t.test('a prefix pauses after five failures in a row, and each time for longer', async (t) => {
  const { clock, wait, answer, fail } = setUp();
  fail('one', 4);
  answer('one', 404);
  fail('one', 4);
  t.equal(wait('one'), 0, 'a success resets the count');
  fail('one', 1);
  for (const pauseMs of [5000, 10_000, 20_000, 40_000, 60_000, 60_000]) {
    fail('one', 5);
    answer('one', 200);
    t.equal(wait('one'), pauseMs, 'responses to older requests change nothing');
    t.equal(wait('two'), 0);
    clock.time += pauseMs - 1;
    t.equal(wait('one'), 1);
    clock.time += 1;
    t.equal(wait('one'), 0, 'the trial');
    t.equal(wait('one'), 1000, 'one at a time');
    fail('one');
  }
  clock.time += 60_000;
  t.equal(wait('one'), 0);
  answer('one', 200);
  t.strictSame([wait('one'), wait('one')], [0, 0], 'a successful trial closes the circuit');
  fail('one', 4);
  t.equal(wait('one'), 0);
});

t.test('429 without Retry-After pauses too, although challenges and tokens in between succeed', async (t) => {
  const { clock, breaker, to, wait, answer } = setUp();
  const lookUp = (prefix: string): void => {
    answer(prefix, 401);
    breaker.answered(to(prefix, { isToken: true }), 200);
    answer(prefix, 429);
  };
  for (let n = 0; n < 4; n += 1) lookUp('one');
  t.equal(wait('one'), 0);
  lookUp('one');
  t.equal(wait('one'), Infinity, 'only the host knows when its limit ends');
  t.equal(wait('two'), 0);
  for (const prefix of ['two', 'three']) lookUp(prefix);
  t.equal(wait('four'), Infinity, 'after several repositories, the whole host');
  for (const pauseMs of [5000, 10_000]) {
    clock.time += pauseMs - 1;
    t.equal(wait('four'), Infinity);
    clock.time += 1;
    t.equal(wait('four'), 0, 'the trial');
    answer('four', 401);
    t.equal(wait('four'), 0, 'which goes on with its token');
    for (const prefix of ['four', 'five', 'six']) answer(prefix, 429);
  }
});

t.test('all prefixes pause if three failed without a success in between, at most for a minute', async (t) => {
  const { clock, wait, answer, fail } = setUp();
  fail('one', 9);
  fail('two');
  t.equal(wait('other'), 0);
  answer('other', 200);
  fail('three');
  fail('four');
  t.equal(wait('other'), 0, 'a success resets the count');
  fail('five');
  for (const pauseMs of [5000, 10_000, 20_000, 40_000, 60_000, 60_000]) {
    t.equal(wait('other'), pauseMs);
    clock.time += pauseMs;
    for (const prefix of ['six', 'seven', 'eight']) {
      t.equal(wait(prefix), 0, 'a trial that fails does not prolong the pause');
      t.equal(wait('other'), 1000, 'one at a time');
      answer(prefix, 503, 1);
    }
  }
  clock.time += 60_000;
  t.equal(wait('other'), 0);
  answer('other', 200);
  t.strictSame([wait('other'), wait('new')], [0, 0]);
});

t.test('Retry-After pauses a prefix, and with the growing pause the longer one', async (t) => {
  const { clock, wait, answer } = setUp();
  for (const prefix of ['one', 'two', 'three']) answer(prefix, 503, 900_000);
  answer('one', 503, 1000);
  answer('one', 200);
  t.strictSame([wait('one'), wait('other')], [900_000, 5000], 'all prefixes pause for less');
  clock.time += 900_000;
  for (let n = 0; n < 3; n += 1) {
    t.equal(wait('one'), 0);
    answer('one', 503, 1000);
    clock.time += 1000;
  }
  t.equal(wait('one'), 39_000, 'the fourth pause, after five failures');
});

t.test('each outcome counts for the host, for its registry, for the credential there, or not', async (t) => {
  const transport = (failure: TransportFailure, phase: TransportError['phase']) =>
    new TransportError(failure, 'host', 'broken', undefined, phase);
  const outcomes: readonly (readonly [outcome: number | TransportError, counts: string])[] = [
    [transport('connect', 'connect'), 'host'],
    [transport('dial-timeout', 'connect'), 'host'],
    [transport('header-timeout', 'header'), 'registry'],
    [transport('garbage', 'header'), 'registry'],
    [transport('closed', 'body'), 'registry'],
    [500, 'registry'],
    [503, 'registry'],
    [429, 'account'],
    [200, 'nothing'],
    [401, 'nothing'],
    [404, 'nothing'],
    ...(['aborted', 'refused-address', 'too-large', 'encoded', 'invalid', 'not-tls'] as const).map(
      (failure) => [transport(failure, 'connect'), 'nothing'] as const,
    ),
  ];
  const [mirrored, bea] = [{ registry: 'host for docker.io' }, { account: 'host for docker.io as bea' }];
  for (const [outcome, counts] of outcomes) {
    const { breaker, to, wait } = setUp();
    const route = to('one', { ...mirrored, account: 'host for docker.io as ann' });
    for (let n = 0; n < 5; n += 1) {
      breaker.admit(route);
      if (typeof outcome === 'number') breaker.answered(route, outcome);
      else breaker.failed(route, outcome);
    }
    const stopped = {
      host: wait('one') > 0,
      registry: wait('one', { ...mirrored, ...bea }) > 0,
      account: wait('one', route) > 0,
    };
    t.strictSame(
      stopped,
      {
        host: counts === 'host',
        registry: counts === 'host' || counts === 'registry',
        account: counts !== 'nothing',
      },
      String(outcome),
    );
  }
});

t.test('a trial without a result leaves the place to the next one', async (t) => {
  const { clock, breaker, to, wait, fail } = setUp();
  fail('one', 5);
  clock.time += 5000;
  t.equal(wait('one'), 0);
  breaker.failed(to('one'), new TransportError('aborted', 'host', 'given up'));
  t.equal(wait('one'), 0);
});

t.test('an open circuit says what gets no requests, for how long and why', async (t) => {
  const { breaker, to, wait, answer, fail } = setUp();
  const open = (prefix: string, message: string, code: string) =>
    t.throws(() => breaker.admit(to(prefix)), { message, code, where: 'host', temporary: true });
  answer('one', 429, 120_000);
  open('one', 'host gets no requests for one for 120 s: it answered 429', 'rate-limited');
  t.equal(wait('one'), 120_000);
  for (let n = 0; n < 5; n += 1) answer('two', 429);
  open('two', 'host gets no requests for two for 5 s: it answered 429', 'rate-limited');
  t.equal(wait('two'), Number.POSITIVE_INFINITY, 'only the host knows when its limit ends');
  fail('three', 5);
  open('three', 'host gets no requests for three for 5 s: it answered 500', 'unavailable');
  fail('four');
  fail('five');
  open('other', 'host gets no requests for 5 s: it answered 500', 'unavailable');
});

t.test('memory is bounded: the oldest circuits are forgotten', async (t) => {
  const { breaker, to, wait, fail } = setUp();
  fail('one', 5);
  for (let n = 0; n < 2048; n += 1) breaker.answered(to('one', { registry: `host-${n}` }), 500);
  t.equal(wait('one'), 0);
});
