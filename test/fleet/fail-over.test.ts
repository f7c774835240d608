import type { ServerResponse } from 'node:http';
import t from 'tap';
import { createFakeClock } from '../support/fake-clock.ts';
import { factsOf, failureOf } from './support.ts';
import { until } from '../support/until.ts';
import { cut, denied, image, setup, silent, type Answer, responding } from './fleet-setup.ts';

t.test('if an agent fails, the next agent of its group gets the request', async (t) => {
  const bad: [string, Answer, boolean][] = [
    ['connection lost', cut, true],
    ['overloaded', (_, response) => void response.writeHead(503).end(), true],
    ['role refused', (_, response) => void response.writeHead(403).end(), true],
    ['huge', (_, response) => void response.end('x'.repeat(300_000)), false],
    ['another image', () => ({ results: [factsOf('registry.example/team/other:1')] }), false],
  ];
  for (const [name, facts, backsOff] of bad) {
    await t.test(name, async (t) => {
      const { lines, lookup, requestCounts, metric } = await setup(t, [{ facts }, {}, {}]);
      t.strictSame(await lookup(), factsOf(image));
      t.strictSame(requestCounts(), [1, 1, 0]);
      t.match(lines(), /an agent gave no answer/);
      await lookup();
      t.strictSame(requestCounts(), backsOff ? [1, 2, 0] : [2, 2, 0]);
      t.equal(await metric('archwright_fleet_agents{state="backed-off"}'), backsOff ? 1 : 0);
    });
  }
  await t.test('stopped', async (t) => {
    const { agents, lookup, requestCounts } = await setup(t, [{}, {}, {}]);
    await agents[0]?.stop();
    t.strictSame(await lookup(), factsOf(image));
    t.strictSame(requestCounts(), [0, 1, 0]);
  });
});

t.test('a lookup is sent to a bounded number of agents', async (t) => {
  await t.test('three of one group', async (t) => {
    const { lookup, requestCounts } = await setup(
      t,
      Array.from({ length: 6 }, () => ({ facts: cut })),
    );
    const facts = await lookup();
    t.match(facts, {
      image,
      error: { code: 'unavailable', message: /^no agent answered: 127\.0\.0\.1:\d+: / },
    });
    t.strictSame(requestCounts(), [1, 1, 1, 0, 0, 0]);
  });
  await t.test('eight of all groups', async (t) => {
    const { lookup, requestCounts } = await setup(
      t,
      Array.from({ length: 12 }, (_, index) => ({
        facts: denied('forbidden'),
        fingerprint: `group ${index}`,
      })),
    );
    t.match(await lookup(), { error: { code: 'forbidden' } });
    t.equal(
      requestCounts().reduce((sum, count) => sum + count, 0),
      8,
    );
  });
});

t.test('if all agents are backed off, the lookup fails at once with retryAfterMs', async (t) => {
  const { lookup, requestCounts } = await setup(t, [{ facts: cut }, { facts: cut }]);
  await lookup();
  t.strictSame(requestCounts(), [1, 1]);
  const facts = await lookup();
  t.strictSame(requestCounts(), [1, 1]);
  t.match(facts, { error: { code: 'unavailable', message: /backed off after failures/ } });
  const retryAfterMs = facts.error?.retryAfterMs ?? 0;
  t.ok(retryAfterMs > 0 && retryAfterMs <= 1000, `${retryAfterMs}`);
});

t.test('a long list of failures is truncated', async (t) => {
  const { lookup } = await setup(
    t,
    Array.from({ length: 12 }, (_, index) => ({ facts: cut, fingerprint: `group ${index}` })),
  );
  t.match(await lookup(), {
    error: { code: 'unavailable', message: /; and 3 more$/ },
  });
});

t.test('a lookup at a slow agent is hedged, and the third slow answer backs it off', async (t) => {
  let closed = 0;
  const slow: Answer = (_, response) => {
    response.once('close', () => {
      closed += 1;
    });
  };
  const clock = createFakeClock();
  const { agents, lookup, requestCounts, metric } = await setup(t, [{ facts: slow }, {}, {}], {
    hedgeMs: 20,
    clock,
  });
  for (const count of [1, 2, 3]) {
    const answer = lookup();
    await until(() => agents[0]?.requests.length === count);
    await clock.advance(20);
    t.strictSame(await answer, factsOf(image));
    t.strictSame(requestCounts(), [count, count, 0]);
    t.equal(await metric('archwright_fleet_hedges_total'), count);
  }
  await until(() => closed === 3);
  await lookup();
  t.strictSame(requestCounts(), [3, 4, 0], 'slow three times in a row: it is backed off');
  t.equal(await metric('archwright_fleet_attempts_total{outcome="abandoned"}'), 3);
});

t.test('a slow registry does not back its agent off', async (t) => {
  const clock = createFakeClock();
  const { agents, lookup, requestCounts, metric } = await setup(t, [{ facts: responding }, {}], {
    hedgeMs: 20,
    clock,
  });
  for (const count of [1, 2, 3, 4, 5]) {
    const answer = lookup();
    await until(() => agents[0]?.requests.length === count);
    await clock.advance(20);
    t.strictSame(await answer, factsOf(image));
    t.strictSame(requestCounts(), [count, count]);
  }
  t.equal(await metric('archwright_fleet_agents{state="backed-off"}'), 0);
});

t.test('attack: hedges for slow images of one namespace are limited', async (t) => {
  const clock = createFakeClock();
  const { agents, lookup, metric } = await setup(t, [{ facts: responding }, { facts: responding }], {
    hedgeMs: 20,
    clock,
  });
  const stop = new AbortController();
  const ask = (namespace: string, count: number): void => {
    for (let n = 0; n < count; n += 1) void lookup({ namespace }, stop.signal);
  };
  const hedges = (): Promise<number> => metric('archwright_fleet_hedges_total');
  ask('attacker', 100);
  await until(() => agents[0]?.requests.length === 1);
  await clock.advance(20);
  t.equal(await hedges(), 21, 'a third of 64');
  await clock.advance(20);
  t.equal(await hedges(), 21);
  ask('shop', 1);
  await until(() => agents[0]?.requests.length === 2);
  await clock.advance(20);
  t.equal(await hedges(), 22);
  stop.abort();
});

t.test('deadlines', async (t) => {
  await t.test('the timeout of a lookup names the agents and their failures', async (t) => {
    const clock = createFakeClock();
    const options = { questionTimeoutMs: 100, hedgeMs: 20, clock };
    const { agents, lookup } = await setup(t, [{ facts: cut }, { facts: silent }], options);
    const facts = lookup();
    await until(() => agents[1]?.requests.length === 1);
    await clock.advance(100);
    t.match(await facts, {
      image,
      error: {
        code: 'timeout',
        message: /^no agent answered in time: .*lost within the response; 127\.0\.0\.1:\d+: no answer yet$/,
      },
    });
  });
  await t.test('three timeouts in a row back an agent off', async (t) => {
    const clock = createFakeClock();
    const options = { questionTimeoutMs: 300, hedgeMs: 20, clock };
    const { agents, lookup, requestCounts, metric } = await setup(t, [{ facts: silent }], options);
    for (let count = 1; count <= 3; count += 1) {
      const facts = lookup();
      await until(() => agents[0]?.requests.length === count);
      await clock.advance(300);
      await facts;
    }
    await until(async () => (await metric('archwright_fleet_agents{state="backed-off"}')) !== 0);
    await lookup();
    t.strictSame(requestCounts(), [3]);
    t.equal(await metric('archwright_fleet_attempts_total{outcome="timeout"}'), 3);
  });
  await t.test('a silence shorter than the usual response time is no failure', async (t) => {
    const clock = createFakeClock();
    const options = { questionTimeoutMs: 100, hedgeMs: 200, clock };
    const { agents, lookup, metric } = await setup(t, [{ facts: silent }], options);
    for (let count = 1; count <= 3; count += 1) {
      const facts = lookup();
      await until(() => agents[0]?.requests.length === count);
      await clock.advance(100);
      t.match(await facts, { error: { code: 'timeout' } });
    }
    t.equal(await metric('archwright_fleet_agents{state="backed-off"}'), 0);
  });
  await t.test('attack: if too little time is left, a timeout is not retried', async (t) => {
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
      const { lookup, requestCounts } = await setup(t, [{ facts: slow }, {}], { hedgeMs: 10_000, clock });
      const facts = lookup();
      const response = await started.promise;
      await clock.advance(passedMs);
      response.end(`${JSON.stringify(failureOf(image, 'timeout'))}\n`);
      t.match(await facts, count === 1 ? factsOf(image) : { error: { code: 'timeout' } });
      t.strictSame(requestCounts(), [1, count]);
    }
  });
  await t.test('an abort ends the lookup', async (t) => {
    const stop = new AbortController();
    const facts: Answer = () => stop.abort();
    const { lookup, requestCounts, metric } = await setup(t, [{ facts }, {}]);
    t.match(await lookup({}, stop.signal), { error: { code: 'timeout' } });
    t.strictSame(requestCounts(), [1, 0]);
    t.equal(await metric('archwright_fleet_agents{state="backed-off"}'), 0, 'the agent did not fail');
    t.match(await lookup({}, stop.signal), { error: { code: 'timeout' } });
    t.strictSame(requestCounts(), [1, 0]);
  });
  await t.test('a timeout of the registry is retried at the next agent', async (t) => {
    const { lookup, requestCounts, metric } = await setup(t, [{ facts: denied('timeout') }, {}]);
    t.strictSame(await lookup(), factsOf(image));
    t.strictSame(requestCounts(), [1, 1]);
    t.equal(await metric('archwright_fleet_agents{state="backed-off"}'), 0);
  });
  await t.test('if all agents report a timeout, the lookup does', async (t) => {
    const { lookup } = await setup(t, [{ facts: denied('timeout') }, { facts: denied('timeout') }]);
    t.match(await lookup(), {
      error: { code: 'timeout', message: 'timeout' },
    });
  });
});

t.test('a rejected request is not sent to the other agents of the group', async (t) => {
  const facts: Answer = (_, response) =>
    void response.writeHead(400).end('{"error":{"code":"bad-request","message":"no good"}}');
  const { lookup, requestCounts, metric } = await setup(t, [{ facts }, {}, {}]);
  t.match(await lookup(), {
    error: { code: 'unavailable', message: 'the agent answered 400: no good' },
  });
  t.strictSame(requestCounts(), [1, 0, 0]);
  t.equal(await metric('archwright_fleet_agents{state="backed-off"}'), 0);
});
