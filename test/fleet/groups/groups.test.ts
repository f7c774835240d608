import { createFakeClock } from '../../support/fake-clock.ts';
import t, { type Test } from 'tap';
import { staticDiscovery, type AgentAddress } from '../../../src/fleet/discovery/discovery.ts';
import { Groups, unknownGroup } from '../../../src/fleet/groups/groups.ts';
import { connect, createPki, startScripted, type Script, type ScriptedAgent } from '../support.ts';
import { until } from '../../support/until.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { silentLog } from '../../support/captured.ts';

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

t.test('agents with the same fingerprint form one group', async (t) => {
  const { groups, names } = await setup(t, [
    { fingerprint: 'a' },
    { fingerprint: 'b' },
    { fingerprint: 'a' },
  ]);
  t.strictSame(names(), [unknownGroup, unknownGroup, unknownGroup]);
  t.equal(groups.size, 1);
  await groups.ready(neverAborted);
  t.strictSame(names(), ['a', 'b', 'a']);
  t.equal(groups.size, 2);
});

t.test('the nodes of a group come from discovery, else from the agents', async (t) => {
  const { groups, agents, list, clock } = await setup(t, [
    { fingerprint: 'a', node: 'n2', architecture: 'arm64' },
    { fingerprint: 'a', node: 'n1', architecture: 'amd64' },
    { fingerprint: 'a' },
    { fingerprint: 'b', node: 'wrong', architecture: 'amd64' },
    { info: () => ({}) },
  ]);
  t.strictSame([...groups.members()], [], 'no fingerprint is known yet');
  const [first, second, third, fourth, fifth] = agents;
  if (!first || !second || !third || !fourth || !fifth) throw new Error('five agents');
  list(first, second, third, Object.assign({}, fourth, { node: 'n3' }), fifth);
  await groups.ready(neverAborted);
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
  t.equal(groups.members(), members, 'the same object while nothing changes');
  second.script.fingerprint = 'b';
  await clock.advance(1000);
  await groups.ready(neverAborted);
  t.strictSame(groups.members().get('a')?.nodes, ['n2']);
  t.strictSame(groups.members().get('b')?.nodes, ['n1', 'n3']);
  list(fourth);
  t.strictSame([...groups.members().keys()], ['b'], 'an agent that left has no nodes');
  t.strictSame(groups.members().get('b')?.nodes, ['wrong']);
});

t.test('reports of agents about their nodes', async (t) => {
  const { groups, agents, list, clock } = await setup(t, [
    { node: 'n1', report: { pullMode: 'local' } },
    { node: 'n2', report: { amd64Level: 3 } },
    { node: 'n3' },
    { report: { amd64Level: 4 } },
  ]);
  const found = () => Object.fromEntries(groups.reports());
  t.strictSame(found(), {});
  await groups.ready(neverAborted);
  const known = groups.reports();
  t.strictSame(found(), { n1: { pullMode: 'local' }, n2: { amd64Level: 3 } });
  await clock.advance(1000);
  await groups.ready(neverAborted);
  t.equal(groups.reports(), known, 'the same object while nothing changes');
  const [first, second, third] = agents;
  if (!first || !second || !third) throw new Error('no agents');
  first.script.report = { pullMode: 'transfer' };
  await clock.advance(1000);
  await groups.ready(neverAborted);
  t.strictSame(found(), { n1: { pullMode: 'transfer' }, n2: { amd64Level: 3 } });
  list(second);
  t.strictSame(found(), { n2: { amd64Level: 3 } }, 'the report of an agent that left is removed');
});

t.test('an agent cannot report for the node of another agent', async (t) => {
  const { groups, agents, list } = await setup(t, [
    { node: 'n1', report: { amd64Level: 1 } },
    { node: 'n1', report: { amd64Level: 4 } },
  ]);
  await groups.ready(neverAborted);
  t.strictSame([...groups.reports()], [], 'two claims, and discovery knows no node names');
  const [first, second] = agents;
  if (!first || !second) throw new Error('no agents');
  list(Object.assign({}, first, { node: 'n1' }), Object.assign({}, second, { node: 'n2' }));
  await groups.ready(neverAborted);
  t.strictSame(Object.fromEntries(groups.reports()), { n1: { amd64Level: 1 }, n2: { amd64Level: 4 } });
});

t.test('agents without a valid fingerprint stay in the unknown group', async (t) => {
  const { groups, names } = await setup(t, [
    { info: () => ({}) },
    { info: (response) => void response.writeHead(500).end() },
    { info: (response) => void response.end('x'.repeat(100_000)) },
  ]);
  await groups.ready(neverAborted);
  t.strictSame(
    names(),
    names().map(() => unknownGroup),
  );
});

t.test('old fingerprints are requested again, and kept if the agent does not respond', async (t) => {
  const { groups, agents, clock, names } = await setup(t, [{ fingerprint: 'a' }, { fingerprint: 'a' }]);
  await groups.ready(neverAborted);
  for (const agent of agents) agent.script.fingerprint = 'b';
  await groups.ready(neverAborted);
  t.strictSame(names(), ['a', 'a'], 'they are still fresh');
  await agents[1]?.stop();
  await clock.advance(1000);
  await groups.ready(neverAborted);
  t.strictSame(names(), ['b', 'a']);
});

t.test('with more agents, fingerprints are refreshed less often', async (t) => {
  const { groups, agents, clock, names, list } = await setup(t, [{ fingerprint: 'a' }]);
  const [agent] = agents;
  if (!agent) throw new Error('no agent');
  // No server listens on these ports.
  const others = Array.from({ length: 19 }, (_, index) => ({
    ...agent,
    url: `https://127.0.0.1:${index + 1}`,
  }));
  await groups.ready(neverAborted);
  list(agent, ...others);
  await clock.advance(1000);
  await groups.ready(neverAborted);
  agent.script.fingerprint = 'b';
  await clock.advance(1999);
  await groups.ready(neverAborted);
  t.equal(names()[0], 'a');
  await clock.advance(1);
  await groups.ready(neverAborted);
  t.equal(names()[0], 'b');
});

t.test('fingerprints of new agents are requested, those of removed agents are forgotten', async (t) => {
  const { groups, agents, names, list } = await setup(t, [{ fingerprint: 'a' }, { fingerprint: 'b' }]);
  list(agents[0]);
  await groups.ready(neverAborted);
  list(agents[1]);
  await until(() => names()[1] === 'b' && names()[0] === unknownGroup);
  t.equal(groups.size, 1);
});

t.test('a failed request for a fingerprint is retried after 5 s', async (t) => {
  let answers = 0;
  const info: Script['info'] = (response) => {
    answers += 1;
    return answers < 3 ? void response.writeHead(503).end() : { credentialFingerprint: 'a' };
  };
  const { groups, names, clock } = await setup(t, [{ info }]);
  await groups.ready(neverAborted);
  t.equal(answers, 2, 'one request at the start, one by ready');
  await clock.advance(5000);
  await until(() => names()[0] === 'a');
  t.equal(answers, 3);
});

t.test('ready returns when its signal aborts', async (t) => {
  const groups = new Groups({
    discovery: staticDiscovery(['https://127.0.0.1:1']),
    // An agent that never responds.
    connection: {
      json: () => new Promise(() => {}),
      lines: () => {
        throw new Error('lines is not called');
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
