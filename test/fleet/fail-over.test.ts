import t from 'tap';
import { createFakeClock } from '../support/fake-clock.ts';
import { factsOf } from '../support/facts.ts';
import { until } from '../support/until.ts';
import { cut, image, responding, setup, silent, type Answer } from './fleet-setup.ts';

t.test('a silent agent costs one lookup its silence, until it answers again', async (t) => {
  const clock = createFakeClock();
  const { lookup, requestCounts, metric } = await setup(t, [{ facts: silent }, {}], {
    clock,
    // On a busy machine, the second agent may need longer than a few hundred milliseconds.
    silenceMs: 1000,
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

t.test('if all agents are silent, the lookup fails at once with retryAfterMs', async (t) => {
  const { lookup, requestCounts } = await setup(t, [{ facts: cut }, { facts: cut }]);
  await lookup();
  t.strictSame(requestCounts(), [1, 1]);
  const { error } = await lookup();
  t.strictSame(requestCounts(), [1, 1]);
  t.equal(error?.code, 'unavailable');
  t.match(error?.message, /the connection was lost during the response/);
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
    /^no agent answered in time: .*lost during the response; 127\.0\.0\.1:\d+: no answer/,
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
