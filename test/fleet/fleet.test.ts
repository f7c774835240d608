import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import type { MatchedCredential } from '../../src/credentials/credential.ts';
import { createAgentList } from '../../src/fleet/discovery/discovery.ts';
import { createFleet } from '../../src/fleet/fleet.ts';
import type { FactsErrorCode, ImageFacts } from '../../src/images/facts/facts.ts';
import { systemClock } from '../../src/async/clock.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { secret } from '../../src/telemetry/secret.ts';
import {
  connect,
  createPki,
  factsOf,
  questionOf,
  readableLog,
  startScripted,
  type Script,
  type ScriptedAgent,
} from './support.ts';
import { cut, denied, image, never, setup, type Answer } from './fleet-setup.ts';

t.test('the owner is asked, and nobody else', async (t) => {
  const { agents, lookup, asked, metric } = await setup(t, [{}, {}, {}]);
  t.strictSame(await lookup(), factsOf(image));
  t.strictSame(asked(), [1, 0, 0]);
  const [first] = agents[0]?.asked ?? [];
  t.match(first, { images: [{ image, pullPolicy: 'IfNotPresent' }], auths: undefined });
  t.ok(first && first.deadlineMs > 10_000 && first.deadlineMs <= 13_900);
  t.equal(await metric('archwright_fleet_lookups_total{outcome="answered"}'), 1);
  t.equal(await metric('archwright_fleet_attempts_total{outcome="answered"}'), 1);
  t.equal(await metric('archwright_fleet_agents{state="ready"}'), 3);
  t.equal(await metric('archwright_fleet_credential_groups'), 1);
  t.equal(await metric('archwright_fleet_answer_duration_seconds_count'), 1);
});

t.test('an answer that is final is not asked for elsewhere', async (t) => {
  for (const code of [
    'not-found',
    'rate-limited',
    'not-an-image',
    'unsupported-media-type',
    'too-large',
    'digest-mismatch',
  ] as const) {
    const { lookup, asked } = await setup(t, [
      { facts: denied(code), fingerprint: 'one' },
      { fingerprint: 'one' },
      { fingerprint: 'two' },
    ]);
    t.match(await lookup(), { error: { code } }, code);
    t.strictSame(asked(), [1, 0, 0], code);
  }
});

t.test('what one credential group may not see is asked of one agent of each other group', async (t) => {
  for (const code of ['unauthorized', 'forbidden', 'unavailable'] as const) {
    const { lookup, asked, metric } = await setup(t, [
      { facts: denied(code), fingerprint: 'one' },
      { facts: denied(code), fingerprint: 'one' },
      { facts: denied(code), fingerprint: 'two' },
      { facts: denied(code), fingerprint: 'two' },
      { fingerprint: 'three' },
    ]);
    t.strictSame(await lookup(), factsOf(image), code);
    t.strictSame(asked(), [1, 0, 1, 0, 1], code);
    t.equal(await metric('archwright_fleet_passed_on_total'), 2);
    t.equal(await metric('archwright_fleet_credential_groups'), 3);
    t.equal(
      await metric('archwright_fleet_agents{state="backed-off"}'),
      0,
      'a denial is no fault of the agent',
    );
  }
});

t.test('where no group may see it, the answer that tells most is given', async (t) => {
  const cases: [FactsErrorCode[], FactsErrorCode][] = [
    [['unauthorized', 'forbidden'], 'unauthorized'],
    [['unavailable', 'forbidden'], 'forbidden'],
    [['forbidden', 'unavailable'], 'forbidden'],
    [['unavailable', 'unavailable'], 'unavailable'],
    [['unauthorized', 'not-found'], 'not-found'],
  ];
  for (const [codes, expected] of cases) {
    const { lookup } = await setup(
      t,
      codes.map((code, index) => ({ facts: denied(code), fingerprint: `group ${index}` })),
    );
    t.match(await lookup(), { error: { code: expected } }, codes.join());
  }
});

t.test('a denial stands although another group cannot be asked', async (t) => {
  const { lookup } = await setup(t, [
    { facts: denied('unauthorized'), fingerprint: 'one' },
    { facts: cut, fingerprint: 'two' },
  ]);
  t.match(await lookup(), { error: { code: 'unauthorized' } });
});

t.test('agents without a fingerprint are one group', async (t) => {
  const info: NonNullable<Script['info']> = (response) => void response.writeHead(500).end();
  const { lookup, asked } = await setup(t, [
    { facts: denied('forbidden'), info },
    { info },
    { info: () => ({ credentialFingerprint: '' }) },
    { fingerprint: 'known' },
  ]);
  t.strictSame(await lookup(), factsOf(image));
  t.strictSame(asked(), [1, 0, 0, 1]);
});

t.test('no agents', async (t) => {
  const { lookup, metric } = await setup(t, []);
  t.match(await lookup(), {
    image,
    error: { code: 'unavailable', hint: 'no agents are known; see archwright status' },
  });
  t.equal(await metric('archwright_fleet_lookups_total{outcome="unanswered"}'), 1);
});

t.test('pull credentials go to the agent and nowhere else', async (t) => {
  const password = 'correct horse battery';
  const matched: MatchedCredential = {
    credential: { username: 'ann', password: secret(password) },
    source: 'pull-secret',
    key: 'registry.example/team',
    origin: 'shop/registry',
    id: 'id-1',
  };
  const leaky: Answer = (asked, response) =>
    void response.writeHead(400).end(JSON.stringify({ error: { message: JSON.stringify(asked) } }));
  const { agents, lines, lookup } = await setup(t, [{ facts: leaky }, {}]);
  const facts = await lookup({ pullCredentials: [matched] });
  t.strictSame(agents[0]?.asked[0]?.auths, { 'registry.example/team': { username: 'ann', password } });
  t.notMatch(lines(), new RegExp(password));
  t.ok(facts.error);
});

t.test('the service account of the pod goes with the question, and chooses no agent', async (t) => {
  const { agents, lookup, asked } = await setup(t, [{}, {}, {}]);
  const serviceAccount = { namespace: 'team', name: 'builder' };
  await lookup({ serviceAccount });
  await lookup({ serviceAccount: { ...serviceAccount, name: 'b' } });
  await lookup();
  t.strictSame(asked(), [3, 0, 0]);
  t.strictSame(
    agents[0]?.asked.map((asked) => asked.serviceAccount),
    [serviceAccount, { namespace: 'team', name: 'b' }, undefined],
  );
});

t.test('agents come and go', async (t) => {
  const pki = await createPki(t);
  const agents = await Promise.all([startScripted(t, pki), startScripted(t, pki), startScripted(t, pki)]);
  const discovery = createAgentList();
  const fleet = createFleet({
    discovery,
    connection: await connect(t, pki),
    clock: systemClock,
    log: readableLog().log,
    metrics: createMetrics(),
  });
  t.teardown(() => fleet.close());
  const change = (...now: readonly (ScriptedAgent | undefined)[]): void =>
    discovery.set(now.flatMap((agent) => (agent ? [{ url: agent.url }] : [])));
  const lookup = (): Promise<ImageFacts> => fleet.lookup(questionOf(image), { signal: never });
  t.match(await lookup(), { error: { code: 'unavailable' } });
  for (const present of [[0], [0, 1], [1], [1, 2], [2, 0, 1], [0]]) {
    change(...present.map((index) => agents[index]));
    const questions = Array.from({ length: 20 }, (_, index) => questionOf(`registry.example/app-${index}:1`));
    const answers = questions.map((question) => fleet.lookup(question, { signal: never }));
    // In the middle of it an agent that is no longer listed goes.
    await setImmediate();
    t.notOk(
      (await Promise.all(answers)).some((facts) => facts.error),
      present.join(),
    );
  }
  const [agent] = agents;
  agent.script.facts = cut;
  t.match(await lookup(), { error: { code: 'unavailable' } });
  delete agent.script.facts;
  change(agents[1]);
  change(agent);
  t.match(await lookup(), { error: undefined }, 'back, it starts anew');
  await agent.stop();
  change(agent, agents[1]);
  t.match(await lookup(), { error: undefined });
});
