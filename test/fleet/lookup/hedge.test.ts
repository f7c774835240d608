import t from 'tap';
import {
  defaultResponseTimeLimits,
  hedge,
  ResponseTime,
  type HedgeOptions,
} from '../../../src/fleet/lookup/hedge.ts';
import type { AgentAddress } from '../../../src/fleet/discovery/discovery.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { neverAborted } from '../../support/never-aborted.ts';

const [a, b, c] = ['a', 'b', 'c'].map((node): AgentAddress => ({ url: `https://${node}:1`, node })) as [
  AgentAddress,
  AgentAddress,
  AgentAddress,
];

interface Call {
  readonly agent: AgentAddress;
  readonly signal: AbortSignal;
  readonly answer: (text: string) => void;
  readonly fail: () => void;
}

/** A hedge over these agents; the test resolves their answers. */
function startHedge(agents: readonly AgentAddress[], options: Partial<HedgeOptions<string>> = {}) {
  const calls: Call[] = [];
  const clock = createFakeClock();
  const answer = hedge({
    agents,
    ask: (agent, signal) => {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      calls.push({ agent, signal, answer: resolve, fail: () => reject(new Error('no')) });
      return promise;
    },
    hedgeAfterMs: 5,
    signal: neverAborted,
    clock,
    ...options,
  });
  return { clock, calls, answer };
}

t.test('if the first agent answers in time, no other gets the request', async (t) => {
  const { calls, answer } = startHedge([a, b]);
  calls[0]?.answer('yes');
  t.equal(await answer, 'yes');
  t.strictSame(
    calls.map((call) => call.agent),
    [a],
  );
});

t.test('after a failure, the next agent gets the request at once', async (t) => {
  const { clock, calls, answer } = startHedge([a, b], {
    onHedge: () => t.fail('this is no hedge'),
    onOvertaken: () => t.fail('no agent was overtaken'),
  });
  calls[0]?.fail();
  await clock.advance(0);
  t.equal(calls.length, 2);
  calls[1]?.answer('yes');
  t.equal(await answer, 'yes');
});

t.test(
  'a slow request is hedged at the next agent; the first answer wins, the others are aborted',
  async (t) => {
    const hedged: AgentAddress[] = [];
    const overtaken: AgentAddress[] = [];
    const { clock, calls, answer } = startHedge([a, b, c], {
      onHedge: (agent) => hedged.push(agent),
      onOvertaken: (agent) => overtaken.push(agent),
    });
    await clock.advance(10);
    t.equal(calls.length, 3);
    calls[1]?.answer('from b');
    t.equal(await answer, 'from b');
    t.strictSame(hedged, [b, c]);
    t.strictSame(overtaken, [a], 'c got its request later than b');
    t.ok(calls[0]?.signal.aborted);
    t.ok(calls[2]?.signal.aborted);
  },
);

t.test('the slow agent can still win, even after the hedge failed', async (t) => {
  for (const fails of [false, true]) {
    const { clock, calls, answer } = startHedge([a, b], {
      onOvertaken: () => t.fail('no agent was overtaken'),
    });
    await clock.advance(5);
    t.equal(calls.length, 2);
    if (fails) calls[1]?.fail();
    await clock.advance(0);
    calls[0]?.answer('from a');
    t.equal(await answer, 'from a');
  }
});

t.test('the result is undefined if every agent fails, and without agents', async (t) => {
  t.equal(await startHedge([a, b, c], { ask: () => Promise.reject(new Error('no')) }).answer, undefined);
  t.equal(await startHedge([]).answer, undefined);
});

t.test('an abort ends the hedge and its requests', async (t) => {
  const stop = new AbortController();
  const { clock, calls, answer } = startHedge([a, b], { signal: stop.signal });
  stop.abort();
  t.equal(await answer, undefined);
  t.ok(calls[0]?.signal.aborted);
  calls[0]?.fail();
  await clock.advance(0);
  t.equal(calls.length, 1, 'no request follows');
  const late = startHedge([a], { signal: stop.signal });
  t.equal(await late.answer, undefined);
  t.equal(late.calls.length, 0);
});

t.test('the estimate stays between its limits', async (t) => {
  const time = new ResponseTime();
  const { floorMs, capMs } = defaultResponseTimeLimits;
  t.ok(time.hedgeAfterMs >= floorMs);
  for (let count = 0; count < 1000; count += 1) time.observe(1);
  t.equal(time.hedgeAfterMs, floorMs);
  for (let count = 0; count < 1000; count += 1) time.observe(60_000);
  t.equal(time.hedgeAfterMs, capMs);
  t.equal(new ResponseTime({ floorMs: 5, capMs: 20 }).hedgeAfterMs, 20, 'the first estimate too');
});

t.test('about one answer in twenty is slower than the estimate', async (t) => {
  const time = new ResponseTime({ floorMs: 1, capMs: 100_000 });
  // A fixed seed: the same numbers in each run.
  let state = 42;
  let slower = 0;
  const rounds = 20_000;
  for (let count = 0; count < rounds; count += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const duration = 100 + (1000 * state) / 2 ** 32;
    if (duration > time.hedgeAfterMs) slower += 1;
    time.observe(duration);
  }
  t.ok(slower / rounds > 0.02 && slower / rounds < 0.08, `${slower} of ${rounds}`);
});

t.test('one slow answer raises the estimate by less than a third', async (t) => {
  const time = new ResponseTime({ floorMs: 100, capMs: 10_000 });
  for (let count = 0; count < 500; count += 1) time.observe(200);
  const before = time.hedgeAfterMs;
  time.observe(9000);
  t.ok(time.hedgeAfterMs < before * 1.3);
});
