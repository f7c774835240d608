import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { MatchedCredential } from '../../src/credentials/credential.ts';
import { createFleet, type AgentAddress, type Fleet } from '../../src/fleet/fleet.ts';
import { staticDiscovery } from '../../src/fleet/discovery-static.ts';
import { rank } from '../../src/fleet/rendezvous.ts';
import type { FactsErrorCode } from '../../src/images/facts.ts';
import { systemClock } from '../../src/telemetry/clock.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { secret } from '../../src/telemetry/secret.ts';
import {
  connect,
  createPki,
  factsOf,
  failureOf,
  questionOf,
  readableLog,
  startScripted,
  until,
  type Pki,
  type Script,
  type ScriptedAgent,
} from './support.ts';

const image = 'registry.example/team/app:1';
const never = new AbortController().signal;

interface Setup {
  readonly fleet: Fleet;
  /** In the order in which they are asked about `image`. */
  readonly agents: readonly ScriptedAgent[];
  readonly lines: () => string;
  /** The value of a metric's sample, such as `archwright_fleet_hedges_total`. */
  readonly metric: (sample: string) => Promise<number>;
}

interface SetupOptions {
  readonly questionTimeoutMs?: number;
  readonly hedgeMs?: number;
}

/** A fleet over one agent for each script; the scripts are given out in the order in which agents are asked about `image`. */
async function setup(t: Test, scripts: readonly Script[], options: SetupOptions = {}): Promise<Setup> {
  const pki: Pki = await createPki(t);
  const started = await Promise.all(scripts.map(() => startScripted(t, pki)));
  const order = rank(
    questionOf(image).reference.repository,
    started.map(({ url }): AgentAddress => ({ url })),
  );
  const agents = order.map(({ url }, index) => {
    const agent = started.find((candidate) => candidate.url === url);
    if (!agent) throw new Error('no such agent');
    Object.assign(agent.script, scripts[index]);
    return agent;
  });
  const { log, lines } = readableLog();
  const metrics = createMetrics();
  const connection = await connect(t, pki, { dialTimeoutMs: 1000 });
  const hedgeMs = options.hedgeMs ?? 10_000;
  const fleet = createFleet({
    discovery: staticDiscovery(agents.map(({ url }) => url)),
    connection,
    clock: systemClock,
    log,
    metrics,
    answerTime: { floorMs: hedgeMs, capMs: hedgeMs },
    ...(options.questionTimeoutMs !== undefined && { questionTimeoutMs: options.questionTimeoutMs }),
  });
  t.teardown(() => fleet.close());
  // Credential groups are known once this is through.
  for await (const facts of fleet.known(never)) t.comment(facts.image);
  return {
    fleet,
    agents,
    lines,
    metric: async (sample) => {
      const line = (await metrics.render()).split('\n').find((text) => text.startsWith(`${sample} `));
      return Number(line?.split(' ').at(-1));
    },
  };
}

type Answer = NonNullable<Script['facts']>;

const denied =
  (code: FactsErrorCode): Answer =>
  (asked) => ({
    results: asked.images.map((one) => failureOf(one.image, code)),
  });
/** Loses the connection within the answer. */
const cut: Answer = (_, response) => {
  response.writeHead(200, { 'content-length': 100 });
  response.write('{"results":', () => response.destroy());
};
const silent: Answer = () => undefined;
const askedOf = (agents: readonly ScriptedAgent[]): number[] => agents.map((agent) => agent.asked.length);

t.test('the owner is asked, and nobody else', async (t) => {
  const { fleet, agents, metric } = await setup(t, [{}, {}, {}]);
  t.strictSame(await fleet.inspect(questionOf(image), { signal: never }), factsOf(image));
  t.strictSame(askedOf(agents), [1, 0, 0]);
  const [asked] = agents[0]?.asked ?? [];
  t.match(asked, { images: [{ image, pullPolicy: 'IfNotPresent' }], auths: undefined });
  t.ok(asked && asked.deadlineMs > 10_000 && asked.deadlineMs <= 13_900);
  t.equal(await metric('archwright_fleet_questions_total{outcome="answered"}'), 1);
  t.equal(await metric('archwright_fleet_attempts_total{outcome="answered"}'), 1);
  t.equal(await metric('archwright_fleet_agents{state="ready"}'), 3);
  t.equal(await metric('archwright_fleet_credential_groups'), 1);
  t.equal(await metric('archwright_fleet_answer_duration_seconds_count'), 1);
});

t.test(
  'an agent that gives no answer is followed by the next of its group, and left alone for a while',
  async (t) => {
    const bad: [string, Answer, boolean][] = [
      ['connection lost', cut, true],
      ['overloaded', (_, response) => void response.writeHead(503).end(), true],
      ['role refused', (_, response) => void response.writeHead(403).end(), true],
      ['no JSON', (_, response) => void response.end('<html>'), false],
      ['huge', (_, response) => void response.end('x'.repeat(300_000)), false],
      ['another image', () => ({ results: [factsOf('registry.example/team/other:1')] }), false],
      ['no results', () => ({}), false],
      ['results of another kind', () => ({ results: {} }), false],
      ['too few results', () => ({ results: [] }), false],
      ['too many results', () => ({ results: [factsOf(image), factsOf(image)] }), false],
      [
        'wrong facts',
        () => ({ results: [{ image, platforms: [{ os: 'linux', architecture: '../x' }] }] }),
        false,
      ],
      ['null', () => null, false],
    ];
    for (const [name, facts, rests] of bad) {
      await t.test(name, async (t) => {
        const { fleet, agents, lines, metric } = await setup(t, [{ facts }, {}, {}]);
        t.strictSame(await fleet.inspect(questionOf(image), { signal: never }), factsOf(image));
        t.strictSame(askedOf(agents), [1, 1, 0]);
        t.match(lines(), /an agent gave no answer/);
        await fleet.inspect(questionOf(image), { signal: never });
        t.strictSame(askedOf(agents), rests ? [1, 2, 0] : [2, 2, 0]);
        t.equal(await metric('archwright_fleet_agents{state="resting"}'), rests ? 1 : 0);
      });
    }
    await t.test('stopped', async (t) => {
      const { fleet, agents } = await setup(t, [{}, {}, {}]);
      await agents[0]?.stop();
      t.strictSame(await fleet.inspect(questionOf(image), { signal: never }), factsOf(image));
      t.strictSame(askedOf(agents), [0, 1, 0]);
    });
  },
);

t.test('an answer that is final is not asked for elsewhere', async (t) => {
  for (const code of [
    'not-found',
    'rate-limited',
    'not-an-image',
    'unsupported-media-type',
    'too-large',
    'digest-mismatch',
  ] as const) {
    const { fleet, agents } = await setup(t, [
      { facts: denied(code), fingerprint: 'one' },
      { fingerprint: 'one' },
      { fingerprint: 'two' },
    ]);
    t.match(await fleet.inspect(questionOf(image), { signal: never }), { error: { code } }, code);
    t.strictSame(askedOf(agents), [1, 0, 0], code);
  }
});

t.test('what one credential group may not see is asked of one agent of each other group', async (t) => {
  for (const code of ['unauthorized', 'forbidden', 'unavailable'] as const) {
    const { fleet, agents, metric } = await setup(t, [
      { facts: denied(code), fingerprint: 'one' },
      { facts: denied(code), fingerprint: 'one' },
      { facts: denied(code), fingerprint: 'two' },
      { facts: denied(code), fingerprint: 'two' },
      { fingerprint: 'three' },
    ]);
    t.strictSame(await fleet.inspect(questionOf(image), { signal: never }), factsOf(image), code);
    t.strictSame(askedOf(agents), [1, 0, 1, 0, 1], code);
    t.equal(await metric('archwright_fleet_passed_on_total'), 2);
    t.equal(await metric('archwright_fleet_credential_groups'), 3);
    t.equal(await metric('archwright_fleet_agents{state="resting"}'), 0, 'a denial is no fault of the agent');
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
    const { fleet } = await setup(
      t,
      codes.map((code, index) => ({ facts: denied(code), fingerprint: `group ${index}` })),
    );
    t.match(
      await fleet.inspect(questionOf(image), { signal: never }),
      { error: { code: expected } },
      codes.join(),
    );
  }
});

t.test('a denial stands although another group cannot be asked', async (t) => {
  const { fleet } = await setup(t, [
    { facts: denied('unauthorized'), fingerprint: 'one' },
    { facts: cut, fingerprint: 'two' },
  ]);
  t.match(await fleet.inspect(questionOf(image), { signal: never }), { error: { code: 'unauthorized' } });
});

t.test('agents without a fingerprint are one group', async (t) => {
  const info: NonNullable<Script['info']> = (response) => void response.writeHead(500).end();
  const { fleet, agents } = await setup(t, [
    { facts: denied('forbidden'), info },
    { info },
    { info: () => ({ credentialFingerprint: '' }) },
    { fingerprint: 'known' },
  ]);
  t.strictSame(await fleet.inspect(questionOf(image), { signal: never }), factsOf(image));
  t.strictSame(askedOf(agents), [1, 0, 0, 1]);
});

t.test('the number of agents that one question is sent to is bounded', async (t) => {
  await t.test('in a group', async (t) => {
    const { fleet, agents } = await setup(
      t,
      Array.from({ length: 6 }, () => ({ facts: cut })),
    );
    const facts = await fleet.inspect(questionOf(image), { signal: never });
    t.match(facts, {
      image,
      error: { code: 'unavailable', message: /^no agent answered: 127\.0\.0\.1:\d+: / },
    });
    t.strictSame(askedOf(agents), [1, 1, 1, 0, 0, 0]);
  });
  await t.test('in all groups', async (t) => {
    const { fleet, agents } = await setup(
      t,
      Array.from({ length: 12 }, (_, index) => ({
        facts: denied('forbidden'),
        fingerprint: `group ${index}`,
      })),
    );
    t.match(await fleet.inspect(questionOf(image), { signal: never }), { error: { code: 'forbidden' } });
    t.equal(
      askedOf(agents).reduce((sum, count) => sum + count, 0),
      8,
    );
  });
});

t.test('agents that all rest are not asked, and the answer says when to come back', async (t) => {
  const { fleet, agents } = await setup(t, [{ facts: cut }, { facts: cut }]);
  await fleet.inspect(questionOf(image), { signal: never });
  t.strictSame(askedOf(agents), [1, 1]);
  const facts = await fleet.inspect(questionOf(image), { signal: never });
  t.strictSame(askedOf(agents), [1, 1]);
  t.match(facts, { error: { code: 'unavailable', message: /left alone for a while after failures/ } });
  const retryAfterMs = facts.error?.retryAfterMs ?? 0;
  t.ok(retryAfterMs > 0 && retryAfterMs <= 1000, `${retryAfterMs}`);
});

t.test('a long list of failures is cut', async (t) => {
  const { fleet } = await setup(
    t,
    Array.from({ length: 12 }, (_, index) => ({ facts: cut, fingerprint: `group ${index}` })),
  );
  t.match(await fleet.inspect(questionOf(image), { signal: never }), {
    error: { code: 'unavailable', message: /; and 3 more$/ },
  });
});

t.test('no agents', async (t) => {
  const { fleet, metric } = await setup(t, []);
  t.match(await fleet.inspect(questionOf(image), { signal: never }), {
    image,
    error: { code: 'unavailable', message: /no agents are known/ },
  });
  t.equal(await metric('archwright_fleet_questions_total{outcome="unanswered"}'), 1);
});

t.test('beside a slow agent the next one is asked', async (t) => {
  let gone = 0;
  const slow: Answer = (_, response) => {
    response.once('close', () => {
      gone += 1;
    });
  };
  const { fleet, agents, metric } = await setup(t, [{ facts: slow }, {}, {}], { hedgeMs: 20 });
  t.strictSame(await fleet.inspect(questionOf(image), { signal: never }), factsOf(image));
  t.strictSame(askedOf(agents), [1, 1, 0]);
  t.equal(await metric('archwright_fleet_hedges_total'), 1);
  await fleet.inspect(questionOf(image), { signal: never });
  await fleet.inspect(questionOf(image), { signal: never });
  t.strictSame(askedOf(agents), [3, 3, 0]);
  await until(() => gone === 3);
  await fleet.inspect(questionOf(image), { signal: never });
  t.strictSame(askedOf(agents), [3, 4, 0], 'three times in a row: it rests');
  t.equal(await metric('archwright_fleet_attempts_total{outcome="abandoned"}'), 3);
});

t.test('time', async (t) => {
  await t.test('ends with an answer that says who was asked', async (t) => {
    const { fleet } = await setup(t, [{ facts: cut }, { facts: silent }], { questionTimeoutMs: 100 });
    t.match(await fleet.inspect(questionOf(image), { signal: never }), {
      image,
      error: {
        code: 'timeout',
        message: /^no agent answered in time: .*lost within the answer; 127\.0\.0\.1:\d+: no answer yet$/,
      },
    });
  });
  await t.test('an agent that lets it run out three times in a row is left alone', async (t) => {
    const { fleet, agents, metric } = await setup(t, [{ facts: silent }], { questionTimeoutMs: 50 });
    for (let count = 0; count < 3; count += 1) await fleet.inspect(questionOf(image), { signal: never });
    await until(() => agents[0]?.asked.length === 3);
    while ((await metric('archwright_fleet_agents{state="resting"}')) === 0) await setImmediate();
    await fleet.inspect(questionOf(image), { signal: never });
    t.strictSame(askedOf(agents), [3]);
    t.equal(await metric('archwright_fleet_attempts_total{outcome="timeout"}'), 3);
  });
  await t.test('ends with the asker', async (t) => {
    const stop = new AbortController();
    const facts: Answer = () => stop.abort();
    const { fleet, agents, metric } = await setup(t, [{ facts }, {}]);
    t.match(await fleet.inspect(questionOf(image), { signal: stop.signal }), { error: { code: 'timeout' } });
    t.strictSame(askedOf(agents), [1, 0]);
    t.equal(await metric('archwright_fleet_agents{state="resting"}'), 0, 'no fault of the agent');
    t.match(await fleet.inspect(questionOf(image), { signal: stop.signal }), { error: { code: 'timeout' } });
    t.strictSame(askedOf(agents), [1, 0]);
  });
  await t.test('an agent whose registry took too long is followed by the next', async (t) => {
    const { fleet, agents, metric } = await setup(t, [{ facts: denied('timeout') }, {}]);
    t.strictSame(await fleet.inspect(questionOf(image), { signal: never }), factsOf(image));
    t.strictSame(askedOf(agents), [1, 1]);
    t.equal(await metric('archwright_fleet_agents{state="resting"}'), 0);
  });
  await t.test('if it is so for all, their answer is given', async (t) => {
    const { fleet } = await setup(t, [{ facts: denied('timeout') }, { facts: denied('timeout') }]);
    t.match(await fleet.inspect(questionOf(image), { signal: never }), {
      error: { code: 'timeout', message: 'timeout' },
    });
  });
});

t.test('what an agent finds wrong is not asked of its whole group', async (t) => {
  const facts: Answer = (_, response) =>
    void response.writeHead(400).end('{"error":{"code":"bad-request","message":"no good"}}');
  const { fleet, agents, metric } = await setup(t, [{ facts }, {}, {}]);
  t.match(await fleet.inspect(questionOf(image), { signal: never }), {
    error: { code: 'unavailable', message: 'the agent answered 400: no good' },
  });
  t.strictSame(askedOf(agents), [1, 0, 0]);
  t.equal(await metric('archwright_fleet_agents{state="resting"}'), 0);
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
  const { fleet, agents, lines } = await setup(t, [{ facts: leaky }, {}]);
  const facts = await fleet.inspect(questionOf(image, [matched]), { signal: never });
  t.strictSame(agents[0]?.asked[0]?.auths, { 'registry.example/team': { username: 'ann', password } });
  t.notMatch(lines(), new RegExp(password));
  t.ok(facts.error);
});

t.test('agents come and go', async (t) => {
  const pki = await createPki(t);
  const agents = await Promise.all([startScripted(t, pki), startScripted(t, pki), startScripted(t, pki)]);
  let listed: readonly AgentAddress[] = [];
  const listeners: (() => void)[] = [];
  const fleet = createFleet({
    discovery: {
      current: () => listed,
      ready: () => Promise.resolve(),
      onChange: (listener) => void listeners.push(listener),
      close: () => {},
    },
    connection: await connect(t, pki),
    clock: systemClock,
    log: readableLog().log,
    metrics: createMetrics(),
  });
  t.teardown(() => fleet.close());
  const change = (...now: readonly (ScriptedAgent | undefined)[]): void => {
    listed = now.flatMap((agent) => (agent ? [{ url: agent.url }] : []));
    for (const listener of listeners) listener();
  };
  t.match(await fleet.inspect(questionOf(image), { signal: never }), { error: { code: 'unavailable' } });
  for (const present of [[0], [0, 1], [1], [1, 2], [2, 0, 1], [0]]) {
    change(...present.map((index) => agents[index]));
    const questions = Array.from({ length: 20 }, (_, index) => questionOf(`registry.example/app-${index}:1`));
    const answers = questions.map((question) => fleet.inspect(question, { signal: never }));
    // In the middle of it an agent that is no longer listed goes.
    await setImmediate();
    t.notOk(
      (await Promise.all(answers)).some((facts) => facts.error),
      present.join(),
    );
  }
  const [agent] = agents;
  agent.script.facts = cut;
  t.match(await fleet.inspect(questionOf(image), { signal: never }), { error: { code: 'unavailable' } });
  delete agent.script.facts;
  change(agents[1]);
  change(agent);
  t.match(
    await fleet.inspect(questionOf(image), { signal: never }),
    { error: undefined },
    'back, it starts anew',
  );
  await agent.stop();
  change(agent, agents[1]);
  t.match(await fleet.inspect(questionOf(image), { signal: never }), { error: undefined });
});
