import t from 'tap';
import { hedge } from '../../../src/fleet/lookup/hedge.ts';
import type { AgentAddress } from '../../../src/fleet/discovery/discovery.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const [a, b, c] = ['a', 'b', 'c'].map((node): AgentAddress => ({ url: `https://${node}:1`, node })) as [
  AgentAddress,
  AgentAddress,
  AgentAddress,
];
const never = new AbortController().signal;

interface Call {
  readonly agent: AgentAddress;
  readonly signal: AbortSignal;
  readonly answer: (text: string) => void;
  readonly fail: () => void;
}

/** Questions whose answers the test gives. */
function desk() {
  const calls: Call[] = [];
  const clock = createFakeClock();
  return {
    clock,
    calls,
    ask: (agent: AgentAddress, signal: AbortSignal) => {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      calls.push({ agent, signal, answer: resolve, fail: () => reject(new Error('no')) });
      return promise;
    },
  };
}

t.test('the first agent answers, and nobody else is asked', async (t) => {
  const { clock, calls, ask } = desk();
  const answer = hedge({ agents: [a, b], ask, hedgeAfterMs: 10_000, signal: never, clock });
  calls[0]?.answer('yes');
  t.equal(await answer, 'yes');
  t.strictSame(
    calls.map((call) => call.agent),
    [a],
  );
});

t.test('one that fails is followed by the next at once', async (t) => {
  const { clock, calls, ask } = desk();
  const answer = hedge({
    agents: [a, b],
    ask,
    hedgeAfterMs: 10_000,
    signal: never,
    clock,
    onHedge: () => t.fail('this is no hedge'),
    onOvertaken: () => t.fail('nobody was overtaken'),
  });
  calls[0]?.fail();
  await clock.advance(0);
  t.equal(calls.length, 2);
  calls[1]?.answer('yes');
  t.equal(await answer, 'yes');
});

t.test(
  'beside a slow one the next is asked; the first answer counts, the other question is given up',
  async (t) => {
    const { clock, calls, ask } = desk();
    const hedged: AgentAddress[] = [];
    const overtaken: AgentAddress[] = [];
    const answer = hedge({
      agents: [a, b, c],
      ask,
      hedgeAfterMs: 5,
      signal: never,
      clock,
      onHedge: (agent) => hedged.push(agent),
      onOvertaken: (agent) => overtaken.push(agent),
    });
    await clock.advance(10);
    t.equal(calls.length, 3);
    calls[1]?.answer('from b');
    t.equal(await answer, 'from b');
    t.strictSame(hedged, [b, c]);
    t.strictSame(overtaken, [a], 'c was asked later than b');
    t.ok(calls[0]?.signal.aborted);
    t.ok(calls[2]?.signal.aborted);
  },
);

t.test('the slow one may still win', async (t) => {
  const { clock, calls, ask } = desk();
  const answer = hedge({
    agents: [a, b],
    ask,
    hedgeAfterMs: 5,
    signal: never,
    clock,
    onOvertaken: () => t.fail('nobody was overtaken'),
  });
  await clock.advance(5);
  t.equal(calls.length, 2);
  calls[0]?.answer('from a');
  t.equal(await answer, 'from a');
});

t.test('when the last fails while another is still asked, that one is waited for', async (t) => {
  const { clock, calls, ask } = desk();
  const answer = hedge({ agents: [a, b], ask, hedgeAfterMs: 5, signal: never, clock });
  await clock.advance(5);
  t.equal(calls.length, 2);
  calls[1]?.fail();
  await new Promise((resolve) => setImmediate(resolve));
  calls[0]?.answer('from a');
  t.equal(await answer, 'from a');
});

t.test('no agent answers', async (t) => {
  const { clock } = desk();
  const failing = hedge({
    agents: [a, b, c],
    ask: () => Promise.reject(new Error('no')),
    hedgeAfterMs: 10_000,
    signal: never,
    clock,
  });
  t.equal(await failing, undefined);
  const empty = hedge({
    agents: [],
    ask: () => Promise.resolve('yes'),
    hedgeAfterMs: 1,
    signal: never,
    clock,
  });
  t.equal(await empty, undefined);
});

t.test('ends when its signal aborts, and tells those it asked', async (t) => {
  const { clock, calls, ask } = desk();
  const stop = new AbortController();
  const answer = hedge({ agents: [a, b], ask, hedgeAfterMs: 10_000, signal: stop.signal, clock });
  stop.abort();
  t.equal(await answer, undefined);
  t.ok(calls[0]?.signal.aborted);
  calls[0]?.fail();
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(calls.length, 1, 'nobody is asked after that');

  const late = await hedge({
    agents: [a],
    ask: () => Promise.resolve('yes'),
    hedgeAfterMs: 1,
    signal: AbortSignal.abort(),
    clock,
  });
  t.equal(late, undefined);
});
