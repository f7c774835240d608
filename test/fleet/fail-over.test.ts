import type { ServerResponse } from 'node:http';
import t from 'tap';
import { createFakeClock } from '../support/fake-clock.ts';
import { factsOf, failureOf } from './support.ts';
import { until } from '../support/until.ts';
import { cut, denied, image, setup, silent, type Answer } from './fleet-setup.ts';

t.test(
  'an agent that gives no answer is followed by the next of its group, and left alone for a while',
  async (t) => {
    const bad: [string, Answer, boolean][] = [
      ['connection lost', cut, true],
      ['overloaded', (_, response) => void response.writeHead(503).end(), true],
      ['role refused', (_, response) => void response.writeHead(403).end(), true],
      ['huge', (_, response) => void response.end('x'.repeat(300_000)), false],
      ['another image', () => ({ results: [factsOf('registry.example/team/other:1')] }), false],
    ];
    for (const [name, facts, rests] of bad) {
      await t.test(name, async (t) => {
        const { lines, lookup, asked, metric } = await setup(t, [{ facts }, {}, {}]);
        t.strictSame(await lookup(), factsOf(image));
        t.strictSame(asked(), [1, 1, 0]);
        t.match(lines(), /an agent gave no answer/);
        await lookup();
        t.strictSame(asked(), rests ? [1, 2, 0] : [2, 2, 0]);
        t.equal(await metric('archwright_fleet_agents{state="backed-off"}'), rests ? 1 : 0);
      });
    }
    await t.test('stopped', async (t) => {
      const { agents, lookup, asked } = await setup(t, [{}, {}, {}]);
      await agents[0]?.stop();
      t.strictSame(await lookup(), factsOf(image));
      t.strictSame(asked(), [0, 1, 0]);
    });
  },
);

t.test('the number of agents that one question is sent to is bounded', async (t) => {
  await t.test('in a group', async (t) => {
    const { lookup, asked } = await setup(
      t,
      Array.from({ length: 6 }, () => ({ facts: cut })),
    );
    const facts = await lookup();
    t.match(facts, {
      image,
      error: { code: 'unavailable', message: /^no agent answered: 127\.0\.0\.1:\d+: / },
    });
    t.strictSame(asked(), [1, 1, 1, 0, 0, 0]);
  });
  await t.test('in all groups', async (t) => {
    const { lookup, asked } = await setup(
      t,
      Array.from({ length: 12 }, (_, index) => ({
        facts: denied('forbidden'),
        fingerprint: `group ${index}`,
      })),
    );
    t.match(await lookup(), { error: { code: 'forbidden' } });
    t.equal(
      asked().reduce((sum, count) => sum + count, 0),
      8,
    );
  });
});

t.test('agents that all rest are not asked, and the answer says when to come back', async (t) => {
  const { lookup, asked } = await setup(t, [{ facts: cut }, { facts: cut }]);
  await lookup();
  t.strictSame(asked(), [1, 1]);
  const facts = await lookup();
  t.strictSame(asked(), [1, 1]);
  t.match(facts, { error: { code: 'unavailable', message: /backed off after failures/ } });
  const retryAfterMs = facts.error?.retryAfterMs ?? 0;
  t.ok(retryAfterMs > 0 && retryAfterMs <= 1000, `${retryAfterMs}`);
});

t.test('a long list of failures is cut', async (t) => {
  const { lookup } = await setup(
    t,
    Array.from({ length: 12 }, (_, index) => ({ facts: cut, fingerprint: `group ${index}` })),
  );
  t.match(await lookup(), {
    error: { code: 'unavailable', message: /; and 3 more$/ },
  });
});

t.test('beside a slow agent the next one is asked', async (t) => {
  let gone = 0;
  const slow: Answer = (_, response) => {
    response.once('close', () => {
      gone += 1;
    });
  };
  const clock = createFakeClock();
  const { agents, lookup, asked, metric } = await setup(t, [{ facts: slow }, {}, {}], { hedgeMs: 20, clock });
  for (const count of [1, 2, 3]) {
    const answer = lookup();
    await until(() => agents[0]?.asked.length === count);
    await clock.advance(20);
    t.strictSame(await answer, factsOf(image));
    t.strictSame(asked(), [count, count, 0]);
    t.equal(await metric('archwright_fleet_hedges_total'), count);
  }
  await until(() => gone === 3);
  await lookup();
  t.strictSame(asked(), [3, 4, 0], 'slow three times in a row: it is backed off');
  t.equal(await metric('archwright_fleet_attempts_total{outcome="abandoned"}'), 3);
});

t.test('a slow registry never counts against its agent', async (t) => {
  const slow: Answer = (_, response) =>
    response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
  const clock = createFakeClock();
  const { agents, lookup, asked, metric } = await setup(t, [{ facts: slow }, {}], { hedgeMs: 20, clock });
  for (const count of [1, 2, 3, 4, 5]) {
    const answer = lookup();
    await until(() => agents[0]?.asked.length === count);
    await clock.advance(20);
    t.strictSame(await answer, factsOf(image));
    t.strictSame(asked(), [count, count]);
  }
  t.equal(await metric('archwright_fleet_agents{state="backed-off"}'), 0);
});

t.test('attack: slow images of one namespace do not go to every agent', async (t) => {
  const slow: Answer = (_, response) =>
    response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
  const clock = createFakeClock();
  const { agents, lookup, metric } = await setup(t, [{ facts: slow }, { facts: slow }], {
    hedgeMs: 20,
    clock,
  });
  const stop = new AbortController();
  const ask = (namespace: string, count: number): void => {
    for (let n = 0; n < count; n += 1) void lookup({ namespace }, stop.signal);
  };
  const hedges = (): Promise<number> => metric('archwright_fleet_hedges_total');
  ask('attacker', 100);
  await until(() => agents[0]?.asked.length === 1);
  await clock.advance(20);
  t.equal(await hedges(), 21, 'a third of 64');
  await clock.advance(20);
  t.equal(await hedges(), 21);
  ask('shop', 1);
  await until(() => agents[0]?.asked.length === 2);
  await clock.advance(20);
  t.equal(await hedges(), 22);
  stop.abort();
});

t.test('time', async (t) => {
  await t.test('ends with an answer that says who was asked', async (t) => {
    const clock = createFakeClock();
    const options = { questionTimeoutMs: 100, hedgeMs: 20, clock };
    const { lookup } = await setup(t, [{ facts: cut }, { facts: silent }], options);
    t.match(await lookup(), {
      image,
      error: {
        code: 'timeout',
        message: /^no agent answered in time: .*lost within the response; 127\.0\.0\.1:\d+: no answer yet$/,
      },
    });
  });
  await t.test('an agent that lets it run out three times in a row is left alone', async (t) => {
    const options = { questionTimeoutMs: 300, hedgeMs: 20 };
    const { agents, lookup, asked, metric } = await setup(t, [{ facts: silent }], options);
    for (let count = 0; count < 3; count += 1) await lookup();
    await until(() => agents[0]?.asked.length === 3);
    await until(async () => (await metric('archwright_fleet_agents{state="backed-off"}')) !== 0);
    await lookup();
    t.strictSame(asked(), [3]);
    t.equal(await metric('archwright_fleet_attempts_total{outcome="timeout"}'), 3);
  });
  await t.test('an agent that was asked a moment before is healthy', async (t) => {
    // Its time stands still: the agent is silent for less than an answer takes.
    const options = { questionTimeoutMs: 100, hedgeMs: 20, clock: createFakeClock() };
    const { lookup, metric } = await setup(t, [{ facts: silent }], options);
    for (let count = 0; count < 3; count += 1) await lookup();
    t.equal(await metric('archwright_fleet_agents{state="backed-off"}'), 0);
  });
  await t.test('attack: without the time for an answer, no other agent is asked', async (t) => {
    for (const [passedMs, count] of [
      [3000, 1],
      [5000, 0],
    ] as const) {
      const started = Promise.withResolvers<ServerResponse>();
      const slow: Answer = (_, response) => {
        response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
        started.resolve(response);
      };
      const clock = createFakeClock();
      const { lookup, asked } = await setup(t, [{ facts: slow }, {}], { hedgeMs: 10_000, clock });
      const facts = lookup();
      const response = await started.promise;
      await clock.advance(passedMs);
      response.end(`${JSON.stringify(failureOf(image, 'timeout'))}\n`);
      t.match(await facts, count === 1 ? factsOf(image) : { error: { code: 'timeout' } });
      t.strictSame(asked(), [1, count]);
    }
  });
  await t.test('ends with the asker', async (t) => {
    const stop = new AbortController();
    const facts: Answer = () => stop.abort();
    const { lookup, asked, metric } = await setup(t, [{ facts }, {}]);
    t.match(await lookup({}, stop.signal), { error: { code: 'timeout' } });
    t.strictSame(asked(), [1, 0]);
    t.equal(await metric('archwright_fleet_agents{state="backed-off"}'), 0, 'no fault of the agent');
    t.match(await lookup({}, stop.signal), { error: { code: 'timeout' } });
    t.strictSame(asked(), [1, 0]);
  });
  await t.test('an agent whose registry took too long is followed by the next', async (t) => {
    const { lookup, asked, metric } = await setup(t, [{ facts: denied('timeout') }, {}]);
    t.strictSame(await lookup(), factsOf(image));
    t.strictSame(asked(), [1, 1]);
    t.equal(await metric('archwright_fleet_agents{state="backed-off"}'), 0);
  });
  await t.test('if it is so for all, their answer is given', async (t) => {
    const { lookup } = await setup(t, [{ facts: denied('timeout') }, { facts: denied('timeout') }]);
    t.match(await lookup(), {
      error: { code: 'timeout', message: 'timeout' },
    });
  });
});

t.test('what an agent finds wrong is not asked of its whole group', async (t) => {
  const facts: Answer = (_, response) =>
    void response.writeHead(400).end('{"error":{"code":"bad-request","message":"no good"}}');
  const { lookup, asked, metric } = await setup(t, [{ facts }, {}, {}]);
  t.match(await lookup(), {
    error: { code: 'unavailable', message: 'the agent answered 400: no good' },
  });
  t.strictSame(asked(), [1, 0, 0]);
  t.equal(await metric('archwright_fleet_agents{state="backed-off"}'), 0);
});
