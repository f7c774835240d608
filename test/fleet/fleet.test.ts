/** Lookups: who gets the request, and what follows if it fails. `model.test.ts` has random fleets. */
import t from 'tap';
import { setImmediate } from 'node:timers/promises';
import type { MatchedCredential } from '../../src/credentials/credential.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { AgentError } from '../../src/fleet/connection.ts';
import { secret } from '../../src/telemetry/secret.ts';
import { factsOf, requestFor } from '../support/facts.ts';
import { agentsOf, type Answer, createAgentList, cut, hanging, image, setup, startFleet } from './support.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { like } from '../support/like.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { until } from '../support/until.ts';
import { Overloaded } from '../../src/async/fair-semaphore.ts';

t.test('a lookup goes to the owner of the repository only', async (t) => {
  const { agents, lookup, requestCounts, metric } = await setup(t, [{}, {}, {}]);
  t.strictSame(await lookup(), factsOf(image));
  t.strictSame(requestCounts(), [1, 0, 0]);
  const [first] = agents[0]?.requests ?? [];
  like(t, first, { images: [{ image, maxAgeMs: 604_800_000 }], auths: undefined });
  t.ok(first && first.deadlineMs > 6000 && first.deadlineMs <= 6900);
  t.equal(await metric('archwright_fleet_attempts_total{outcome="answered"}'), 1);
  t.equal(await metric('archwright_fleet_agents{state="ready"}'), 3);
  t.equal(await metric('archwright_fleet_credential_groups'), 1);
});

t.test('without agents, a lookup fails with a hint', async (t) => {
  const { lookup } = await setup(t, []);
  like(t, await lookup(), {
    image,
    error: { code: 'unavailable', hint: 'no agents are known; see archwright status', retryAfterMs: 5000 },
  });
});

t.test('pull credentials are sent to the agent, and are neither logged nor returned', async (t) => {
  const password = 'correct horse battery';
  const matched: MatchedCredential = {
    credential: { username: 'ann', password: secret(password) },
    source: 'pull-secret',
    key: 'registry.example/team',
    origin: 'shop/registry',
    id: 'id-1',
  };
  const leaky: Answer = (body) => {
    throw new AgentError('bad-answer', JSON.stringify(body));
  };
  const { agents, lines, lookup } = await setup(t, [{ facts: leaky }]);
  const facts = await lookup({ pullCredentials: [matched] });
  t.strictSame(agents[0]?.requests[0]?.auths, { 'registry.example/team': [{ username: 'ann', password }] });
  t.notMatch(lines(), new RegExp(password));
  t.ok(facts.error);
});

t.test('a request names the service account', async (t) => {
  const { agents, lookup } = await setup(t, [{}]);
  const serviceAccount = { namespace: 'team', name: 'builder' };
  await lookup({ serviceAccount });
  t.strictSame(agents[0]?.requests[0]?.serviceAccount, serviceAccount);
});

t.test('lookups succeed while agents join and leave', async (t) => {
  const agents = agentsOf([{}, {}, {}]);
  const discovery = createAgentList();
  const { fleet } = startFleet(t, agents, { discovery });
  const change = (...present: readonly number[]): void =>
    discovery.set(present.flatMap((index) => agents[index] ?? []));
  const lookup = (): Promise<ImageFacts> => fleet.lookup(requestFor(image), { signal: neverAborted });
  like(t, await lookup(), { error: { code: 'unavailable' } });
  for (const present of [[0], [0, 1], [1], [1, 2], [2, 0, 1], [0]]) {
    change(...present);
    const requests = Array.from({ length: 20 }, (_, index) => requestFor(`registry.example/app-${index}:1`));
    const answers = requests.map((request) => fleet.lookup(request, { signal: neverAborted }));
    // The agents change while these lookups run.
    await setImmediate();
    t.notOk(
      (await Promise.all(answers)).some((facts) => facts.error),
      present.join(),
    );
  }
  const { script = {} } = agents[0] ?? {};
  script.facts = cut;
  like(t, await lookup(), { error: { code: 'unavailable' } });
  delete script.facts;
  change(1);
  change(0);
  like(t, await lookup(), { error: undefined }, 'an agent that comes back is asked');
});

t.test('an agent that cannot be reached gets no lookup until it answers again', async (t) => {
  const clock = createFakeClock();
  const { lookup, requestCounts, metric } = await setup(t, [{ facts: cut }, {}], clock);
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
  t.match((await lookup()).error?.message, /^no agent answered: 10\.0\.0\.\d+:9443: .*; and 3 more$/);
});

t.test('the timeout of a lookup names them too', async (t) => {
  const clock = createFakeClock();
  const { agents, lookup } = await setup(t, [{ facts: cut }, { facts: hanging }], clock);
  const facts = lookup();
  await until(() => agents[1]?.requests.length === 1);
  await clock.advance(14_000);
  const { error } = await facts;
  t.equal(error?.code, 'timeout');
  t.match(
    error?.message,
    /^no agent answered in time: .*lost during the response; 10\.0\.0\.\d+:9443: no answer/,
  );
});

t.test('an abort ends the lookup', async (t) => {
  const stop = new AbortController();
  const facts: Answer = (body, signal) => {
    stop.abort();
    return hanging(body, signal);
  };
  const { lookup, requestCounts, metric } = await setup(t, [{ facts }, {}]);
  t.equal((await lookup({}, stop.signal)).error?.code, 'timeout');
  t.strictSame(requestCounts(), [1, 0]);
  t.equal(await metric('archwright_fleet_agents{state="ready"}'), 2, 'the agent did not fail');
  t.equal((await lookup({}, stop.signal)).error?.code, 'timeout');
  t.strictSame(requestCounts(), [1, 0]);
});

t.test(
  'attack: an image of another tenant does not wait in the queue of a namespace full of slow images',
  async (t) => {
    const answer: Answer = (body, signal) => {
      const [{ image }] = body.images;
      return image.includes('slow') ? hanging(body, signal) : factsOf(image);
    };
    const { fleet, agents } = await setup(t, [{ facts: answer }]);
    const stop = new AbortController();
    const lookup = (namespace: string, image: string) =>
      fleet.lookup(requestFor(image, { namespace }), { signal: stop.signal });
    const slow = Array.from({ length: 40 }, (_, index) => `registry.example/slow/app-${index}:1`);
    const target = 'registry.example/shop/app:1';
    const attack = [...slow, target].map((image) => lookup('attacker', image));
    // Of 36 places, one namespace gets a third.
    await until(() => agents[0]?.requests.length === 12);
    like(t, await lookup('shop', target), { image: target, error: undefined });
    t.equal(agents[0]?.requests.length, 13);
    stop.abort();
    await Promise.all(attack);
  },
);

t.test('requests that an agent never got are no failures of it', async (t) => {
  const stop = new AbortController();
  const { fleet, metric } = await setup(t, [{ facts: hanging }]);
  const answers = Array.from({ length: 800 }, (_, index) =>
    fleet.lookup(requestFor(`registry.example/slow/app-${index}:1`), { signal: stop.signal }),
  );
  const settled = Promise.allSettled(answers);
  // A namespace may have a third of 2,048 requests waiting.
  t.ok((await answers.at(-1)?.catch((error: unknown) => error)) instanceof Overloaded);
  t.equal(await metric('archwright_fleet_attempts_total{outcome="timeout"}'), 0);
  t.equal(await metric('archwright_fleet_agents{state="ready"}'), 1);
  stop.abort();
  await settled;
});
