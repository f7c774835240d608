import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import type { MatchedCredential } from '../../src/credentials/credential.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { systemClock } from '../../src/async/clock.ts';
import { secret } from '../../src/telemetry/secret.ts';
import { factsOf, requestFor } from '../support/facts.ts';
import { createAgentList, createPki, startScripted, type ScriptedAgent } from './support.ts';
import { cut, image, setup, startFleet, type Answer } from './fleet-setup.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { like } from '../support/like.ts';

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
  const leaky: Answer = (body, response) =>
    void response.writeHead(400).end(JSON.stringify({ error: { message: JSON.stringify(body) } }));
  const { agents, lines, lookup } = await setup(t, [{ facts: leaky }]);
  const facts = await lookup({ pullCredentials: [matched] });
  t.strictSame(agents[0]?.requests[0]?.auths, { 'registry.example/team': [{ username: 'ann', password }] });
  t.notMatch(lines(), new RegExp(password));
  t.ok(facts.error);
});

t.test('a request names the service account, which does not affect the choice of agent', async (t) => {
  const { agents, lookup, requestCounts } = await setup(t, [{}, {}, {}]);
  const serviceAccount = { namespace: 'team', name: 'builder' };
  await lookup({ serviceAccount });
  await lookup({ serviceAccount: { ...serviceAccount, name: 'b' } });
  await lookup();
  t.strictSame(requestCounts(), [3, 0, 0]);
  t.strictSame(
    agents[0]?.requests.map(({ serviceAccount }) => serviceAccount),
    [serviceAccount, { namespace: 'team', name: 'b' }, undefined],
  );
});

t.test('lookups succeed while agents join and leave', async (t) => {
  const pki = await createPki(t);
  const agents = await Promise.all([startScripted(t, pki), startScripted(t, pki), startScripted(t, pki)]);
  const discovery = createAgentList();
  const { fleet } = await startFleet(t, pki, discovery, { clock: systemClock });
  const change = (...now: readonly (ScriptedAgent | undefined)[]): void =>
    discovery.set(now.flatMap((agent) => (agent ? [{ url: agent.url }] : [])));
  const lookup = (): Promise<ImageFacts> => fleet.lookup(requestFor(image), { signal: neverAborted });
  like(t, await lookup(), { error: { code: 'unavailable' } });
  for (const present of [[0], [0, 1], [1], [1, 2], [2, 0, 1], [0]]) {
    change(...present.map((index) => agents[index]));
    const requests = Array.from({ length: 20 }, (_, index) => requestFor(`registry.example/app-${index}:1`));
    const answers = requests.map((request) => fleet.lookup(request, { signal: neverAborted }));
    // The agents change while these lookups run.
    await setImmediate();
    t.notOk(
      (await Promise.all(answers)).some((facts) => facts.error),
      present.join(),
    );
  }
  const [agent] = agents;
  agent.script.facts = cut;
  like(t, await lookup(), { error: { code: 'unavailable' } });
  delete agent.script.facts;
  change(agents[1]);
  change(agent);
  like(t, await lookup(), { error: undefined }, 'an agent that comes back is asked');
  await agent.stop();
  change(agent, agents[1]);
  like(t, await lookup(), { error: undefined });
});
