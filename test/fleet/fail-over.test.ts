import t from 'tap';
import { createFakeClock } from '../support/fake-clock.ts';
import { factsOf } from '../support/facts.ts';
import { until } from '../support/until.ts';
import { cut, denied, image, responding, setup, silent, type Answer } from './fleet-setup.ts';

t.test('if an agent fails, the next agent of its group gets the request', async (t) => {
  const bad: [string, Answer, isFault: boolean][] = [
    ['connection lost', cut, true],
    ['overloaded', (_, response) => void response.writeHead(503).end(), true],
    ['role refused', (_, response) => void response.writeHead(403).end(), true],
    ['rejected', (_, response) => void response.writeHead(400).end(), false],
    ['huge', (_, response) => void response.end('x'.repeat(300_000)), false],
    ['another image', () => ({ results: [factsOf('registry.example/team/other:1')] }), false],
  ];
  for (const [name, facts, isFault] of bad) {
    await t.test(name, async (t) => {
      const { lines, lookup, requestCounts, metric } = await setup(t, [{ facts }, {}, {}]);
      t.strictSame(await lookup(), factsOf(image));
      t.strictSame(requestCounts(), [1, 1, 0]);
      t.match(lines(), /an agent gave no answer/);
      await lookup();
      t.strictSame(requestCounts(), isFault ? [1, 2, 0] : [2, 2, 0], 'the next lookup');
      t.equal(await metric('archwright_fleet_agents{state="silent"}'), isFault ? 1 : 0);
    });
  }
  await t.test('stopped', async (t) => {
    const { agents, lookup, requestCounts } = await setup(t, [{}, {}, {}]);
    await agents[0]?.stop();
    t.strictSame(await lookup(), factsOf(image));
    t.strictSame(requestCounts(), [0, 1, 0]);
  });
});

t.test('a silent agent costs one lookup its silence, until it answers again', async (t) => {
  const clock = createFakeClock();
  const { lookup, requestCounts, metric } = await setup(t, [{ facts: silent }, {}], {
    clock,
    silenceMs: 300,
  });
  t.strictSame(await lookup(), factsOf(image));
  t.equal(await metric('archwright_fleet_attempts_total{outcome="unreachable"}'), 1);
  await lookup();
  t.strictSame(requestCounts(), [1, 2]);
  await clock.advance(5000);
  await until(async () => (await metric('archwright_fleet_agents{state="ready"}')) === 2);
  await lookup();
  t.strictSame(requestCounts(), [2, 3]);
});

t.test('a slow registry is no silence', async (t) => {
  const clock = createFakeClock();
  const { agents, lookup, metric } = await setup(t, [{ facts: responding }, {}], { clock });
  const answer = lookup();
  await until(() => agents[0]?.requests.length === 1);
  await clock.advance(3000);
  t.equal(agents[1]?.requests.length, 0);
  await clock.advance(4000);
  t.strictSame(await answer, factsOf(image), 'of the second agent, after half of the time');
  t.equal(await metric('archwright_fleet_agents{state="ready"}'), 2);
  t.equal(await metric('archwright_fleet_attempts_total{outcome="timeout"}'), 1);
});

t.test('if all agents are silent, the lookup fails at once with retryAfterMs', async (t) => {
  const { lookup, requestCounts } = await setup(t, [{ facts: cut }, { facts: cut }]);
  await lookup();
  t.strictSame(requestCounts(), [1, 1]);
  const { error } = await lookup();
  t.strictSame(requestCounts(), [1, 1]);
  t.equal(error?.code, 'unavailable');
  t.match(error?.message, /the connection was lost within the response/);
  t.equal(error?.retryAfterMs, 5000);
});

t.test('the error names the agents and their failures, but not hundreds', async (t) => {
  const scripts = Array.from({ length: 12 }, (_, index) => ({ facts: cut, fingerprint: `group ${index}` }));
  const { lookup } = await setup(t, scripts);
  t.match((await lookup()).error?.message, /^no agent answered: 127\.0\.0\.1:\d+: .*; and 3 more$/);
});

t.test('the timeout of a lookup names them too', async (t) => {
  const clock = createFakeClock();
  const { agents, lookup } = await setup(t, [{ facts: cut }, { facts: responding }], {
    clock,
    lookupTimeoutMs: 1000,
  });
  const facts = lookup();
  await until(() => agents[1]?.requests.length === 1);
  await clock.advance(1000);
  const { error } = await facts;
  t.equal(error?.code, 'timeout');
  t.match(
    error?.message,
    /^no agent answered in time: .*lost within the response; 127\.0\.0\.1:\d+: no answer/,
  );
});

t.test('an abort ends the lookup', async (t) => {
  const stop = new AbortController();
  const facts: Answer = () => stop.abort();
  const { lookup, requestCounts, metric } = await setup(t, [{ facts }, {}]);
  t.equal((await lookup({}, stop.signal)).error?.code, 'timeout');
  t.strictSame(requestCounts(), [1, 0]);
  t.equal(await metric('archwright_fleet_agents{state="ready"}'), 2, 'the agent did not fail');
  t.equal((await lookup({}, stop.signal)).error?.code, 'timeout');
  t.strictSame(requestCounts(), [1, 0]);
});

t.test('a timeout of the registry is retried at the next agent', async (t) => {
  const one = await setup(t, [{ facts: denied('timeout') }, {}]);
  t.strictSame(await one.lookup(), factsOf(image));
  t.strictSame(one.requestCounts(), [1, 1]);
  t.equal(await one.metric('archwright_fleet_agents{state="ready"}'), 2);
  const all = await setup(t, [{ facts: denied('timeout') }, { facts: denied('timeout') }]);
  t.equal((await all.lookup()).error?.code, 'timeout');
});
