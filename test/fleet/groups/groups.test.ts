import { createFakeClock } from '../../support/fake-clock.ts';
import t, { type Test } from 'tap';
import { staticDiscovery, type AgentAddress } from '../../../src/fleet/discovery/discovery.ts';
import { Groups, unknownGroup } from '../../../src/fleet/groups/groups.ts';
import { connect, createPki, silentLog, startScripted, type Script, type ScriptedAgent } from '../support.ts';
import { until } from '../../support/until.ts';

const never = new AbortController().signal;

async function setup(t: Test, scripts: readonly Script[]) {
  const pki = await createPki(t);
  const agents = await Promise.all(scripts.map((script) => startScripted(t, pki, script)));
  const listeners: (() => void)[] = [];
  let listed: readonly AgentAddress[] = agents;
  const clock = createFakeClock();
  const groups = new Groups({
    discovery: {
      current: () => listed,
      ready: () => Promise.resolve(),
      onChange: (listener) => void listeners.push(listener),
      close: () => {},
    },
    connection: await connect(t, pki),
    clock,
    log: silentLog,
    refreshMs: 1000,
  });
  t.teardown(() => groups.close());
  return {
    groups,
    agents,
    clock,
    names: () => agents.map((agent) => groups.groupOf(agent)),
    list: (...now: readonly (ScriptedAgent | undefined)[]) => {
      listed = now.filter((agent) => agent !== undefined);
      for (const listener of listeners) listener();
    },
  };
}

t.test('agents with one fingerprint are one group', async (t) => {
  const { groups, names } = await setup(t, [
    { fingerprint: 'a' },
    { fingerprint: 'b' },
    { fingerprint: 'a' },
  ]);
  t.strictSame(names(), [unknownGroup, unknownGroup, unknownGroup]);
  t.equal(groups.size, 1);
  await groups.ready(never);
  t.strictSame(names(), ['a', 'b', 'a']);
  t.equal(groups.size, 2);
});

t.test('members of the groups, their nodes by discovery or by what they say', async (t) => {
  const { groups, agents, list, clock } = await setup(t, [
    { fingerprint: 'a', node: 'n2', architecture: 'arm64' },
    { fingerprint: 'a', node: 'n1', architecture: 'amd64' },
    { fingerprint: 'a' },
    { fingerprint: 'b', node: 'wrong', architecture: 'amd64' },
    { info: () => ({}) },
  ]);
  t.strictSame([...groups.members()], [], 'nothing known yet');
  const [first, second, third, fourth, fifth] = agents;
  if (!first || !second || !third || !fourth || !fifth) throw new Error('five agents');
  list(first, second, third, Object.assign({}, fourth, { node: 'n3' }), fifth);
  await groups.ready(never);
  const members = groups.members();
  t.strictSame(
    [...members.values()].map(({ fingerprint, agents: own, nodes, architectures }) => [
      fingerprint,
      own.length,
      nodes,
      architectures,
    ]),
    [
      ['a', 3, ['n1', 'n2'], ['amd64', 'arm64']],
      ['b', 1, ['n3'], ['amd64']],
    ],
  );
  t.equal(groups.members(), members, 'not made again');
  second.script.fingerprint = 'b';
  await clock.advance(1000);
  await groups.ready(never);
  t.strictSame(groups.members().get('a')?.nodes, ['n2']);
  t.strictSame(groups.members().get('b')?.nodes, ['n1', 'n3']);
  list(fourth);
  t.strictSame([...groups.members().keys()], ['b'], 'who is gone has no nodes');
  t.strictSame(groups.members().get('b')?.nodes, ['wrong']);
});

t.test('what agents say of their nodes', async (t) => {
  const { groups, agents, list, clock } = await setup(t, [
    { node: 'n1', report: { pullMode: 'local' } },
    { node: 'n2', report: { amd64Level: 3 } },
    { node: 'n3' },
    { report: { amd64Level: 4 } },
  ]);
  const found = () => Object.fromEntries(groups.reports());
  t.strictSame(found(), {});
  await groups.ready(never);
  const known = groups.reports();
  t.strictSame(found(), { n1: { pullMode: 'local' }, n2: { amd64Level: 3 } });
  await clock.advance(1000);
  await groups.ready(never);
  t.equal(groups.reports(), known, 'the same object while nothing changes');
  const [first, second, third] = agents;
  if (!first || !second || !third) throw new Error('no agents');
  first.script.report = { pullMode: 'transfer' };
  await clock.advance(1000);
  await groups.ready(never);
  t.strictSame(found(), { n1: { pullMode: 'transfer' }, n2: { amd64Level: 3 } });
  list(second);
  t.strictSame(found(), { n2: { amd64Level: 3 } }, 'an agent that is gone says nothing');
});

t.test('an agent cannot speak for the node of another one', async (t) => {
  const { groups, agents, list } = await setup(t, [
    { node: 'n1', report: { amd64Level: 1 } },
    { node: 'n1', report: { amd64Level: 4 } },
  ]);
  await groups.ready(never);
  t.strictSame([...groups.reports()], [], 'two claims, and no discovery that knows better');
  const [first, second] = agents;
  if (!first || !second) throw new Error('no agents');
  list(Object.assign({}, first, { node: 'n1' }), Object.assign({}, second, { node: 'n2' }));
  await groups.ready(never);
  t.strictSame(Object.fromEntries(groups.reports()), { n1: { amd64Level: 1 }, n2: { amd64Level: 4 } });
});

t.test('what says no fingerprint stays unknown', async (t) => {
  const { groups, names } = await setup(t, [
    { info: () => ({}) },
    { info: (response) => void response.writeHead(500).end() },
    { info: (response) => void response.end('x'.repeat(100_000)) },
  ]);
  await groups.ready(never);
  t.strictSame(
    names(),
    names().map(() => unknownGroup),
  );
});

t.test('fingerprints are asked for again when they are old, and kept when there is no answer', async (t) => {
  const { groups, agents, clock, names } = await setup(t, [{ fingerprint: 'a' }, { fingerprint: 'a' }]);
  await groups.ready(never);
  for (const agent of agents) agent.script.fingerprint = 'b';
  await groups.ready(never);
  t.strictSame(names(), ['a', 'a'], 'not old yet');
  await agents[1]?.stop();
  await clock.advance(1000);
  await groups.ready(never);
  t.strictSame(names(), ['b', 'a']);
});

t.test('the more agents there are, the longer fingerprints are taken as true', async (t) => {
  const { groups, agents, clock, names, list } = await setup(t, [{ fingerprint: 'a' }]);
  const [agent] = agents;
  if (!agent) throw new Error('no agent');
  // Nobody listens on these ports.
  const others = Array.from({ length: 19 }, (_, index) => ({
    ...agent,
    url: `https://127.0.0.1:${index + 1}`,
  }));
  await groups.ready(never);
  list(agent, ...others);
  await clock.advance(1000);
  await groups.ready(never);
  agent.script.fingerprint = 'b';
  await clock.advance(1999);
  await groups.ready(never);
  t.equal(names()[0], 'a');
  await clock.advance(1);
  await groups.ready(never);
  t.equal(names()[0], 'b');
});

t.test('new agents are asked when they come, those that go are forgotten', async (t) => {
  const { groups, agents, names, list } = await setup(t, [{ fingerprint: 'a' }, { fingerprint: 'b' }]);
  list(agents[0]);
  await groups.ready(never);
  list(agents[1]);
  await until(() => names()[1] === 'b' && names()[0] === unknownGroup);
  t.equal(groups.size, 1);
});

t.test('agents that gave no answer are asked again before long', async (t) => {
  let answers = 0;
  const info: Script['info'] = (response) => {
    answers += 1;
    return answers < 3 ? void response.writeHead(503).end() : { credentialFingerprint: 'a' };
  };
  const { groups, names, clock } = await setup(t, [{ info }]);
  await groups.ready(never);
  t.equal(answers, 2, 'at the start, and when it is waited for');
  await clock.advance(5000);
  await until(() => names()[0] === 'a');
  t.equal(answers, 3);
});

t.test('ready ends with its signal', async (t) => {
  const groups = new Groups({
    discovery: staticDiscovery(['https://127.0.0.1:1']),
    // An agent that is being waited for.
    connection: {
      json: () => new Promise(() => {}),
      lines: () => {
        throw new Error('nobody reads lines');
      },
      close: () => Promise.resolve(),
    },
    clock: createFakeClock(),
    log: silentLog,
  });
  t.teardown(() => groups.close());
  await groups.ready(AbortSignal.abort());
  const stop = new AbortController();
  const ready = groups.ready(stop.signal);
  stop.abort();
  await ready;
});
