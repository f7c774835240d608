/** What the fleet knows of its agents from their `/v1/info`: groups, reports, problems, availability. */
import { readFileSync } from 'node:fs';
import { setImmediate as settled } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { readAgentInfo } from '../../src/fleet/agents.ts';
import { classify } from '../../src/nodes/classify.ts';
import { groupByClass } from '../../src/nodes/node-classes.ts';
import { recordingLog } from '../support/captured.ts';
import { requestFor } from '../support/facts.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { like } from '../support/like.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { until } from '../support/until.ts';
import { agentsOf, createAgentList, cut, type Script, startFleet } from './support.ts';

const request = requestFor('registry.example/team/app:1');
const minute = 60_000;

async function setup(t: Test, scripts: readonly Script[], nodes: readonly (string | undefined)[] = []) {
  const agents = agentsOf(scripts);
  const discovery = createAgentList();
  const list = (names = nodes): void => {
    const listed = agents.map(({ url }, index) => ({ url, node: names[index] }));
    discovery.set(listed.map(({ url, node }) => (node === undefined ? { url } : { url, node })));
  };
  list();
  const clock = createFakeClock();
  const { log, lines } = recordingLog();
  const { fleet, metric } = startFleet(t, agents, { discovery, clock, log });
  await fleet.grouped(neverAborted);
  return {
    agents,
    clock,
    discovery,
    list,
    fleet,
    metric,
    /** Lines about availability. */
    logged: () =>
      lines
        .filter((line) => line['agents'] !== undefined)
        .map(({ level, msg, agents: count }) => `${String(level)} ${String(count)} ${String(msg)}`),
    groups: () => metric('archwright_fleet_credential_groups'),
    /** Each group's nodes and architectures; all agents have every image. */
    members: async () => {
      const { able } = await fleet.pullable(request, neverAborted);
      const groups = able.map(({ fingerprint: name, nodes, architectures }) => ({
        name,
        nodes,
        architectures,
      }));
      return groups.sort((a, b) => (a.name < b.name ? -1 : 1));
    },
  };
}

t.test('agents with the same fingerprint form a group, whose nodes discovery knows best', async (t) => {
  const scripts = [
    { fingerprint: 'a', node: 'n2', architecture: 'arm64' },
    { fingerprint: 'a', node: 'n1', architecture: 'amd64' },
    { fingerprint: 'a' },
    { fingerprint: 'b', node: 'wrong', architecture: 'amd64' },
    { info: () => ({}) },
  ];
  const { agents, clock, fleet, members, groups } = await setup(t, scripts, [
    undefined,
    undefined,
    undefined,
    'n3',
  ]);
  t.strictSame(await members(), [
    { name: 'a', nodes: ['n1', 'n2'], architectures: ['amd64', 'arm64'] },
    { name: 'b', nodes: ['n3'], architectures: ['amd64'] },
  ]);
  t.equal(await groups(), 2);
  if (agents[1]) agents[1].script.fingerprint = 'b';
  await fleet.grouped(neverAborted);
  t.strictSame((await members())[0]?.nodes, ['n1', 'n2'], 'asked again after a minute');
  await clock.advance(minute);
  await fleet.grouped(neverAborted);
  t.strictSame(
    (await members()).map(({ nodes }) => nodes),
    [['n2'], ['n1', 'n3']],
  );
});

t.test('an agent that stops keeps its group; one that leaves has none', async (t) => {
  const { agents, clock, discovery, fleet, groups } = await setup(t, [
    { fingerprint: 'a' },
    { fingerprint: 'b' },
  ]);
  if (agents[1]) agents[1].script.info = cut;
  await clock.advance(minute);
  await fleet.grouped(neverAborted);
  t.equal(await groups(), 2);
  discovery.set(agents.slice(0, 1).map(({ url }) => ({ url })));
  await fleet.grouped(neverAborted);
  t.equal(await groups(), 1);
});

t.test('of the limits of Docker Hub, the one with the smallest part left counts', async (t) => {
  const hubs: unknown[] = [
    { limit: 100, remaining: 76 },
    { limit: 5000, remaining: 200 },
    { limit: 0, remaining: 1 },
    { limit: 100, remaining: -1 },
    { limit: 1e99, remaining: 0 },
    { limit: '100', remaining: '0' },
    null,
    undefined,
  ];
  const scripts = hubs.map((_, index) => ({
    info: () => ({ credentialFingerprint: 'a', dockerHub: hubs[index] }),
  }));
  const { agents, clock, fleet, metric } = await setup(t, scripts);
  const left = async () => {
    const name = 'archwright_fleet_docker_hub_limit';
    return [await metric(`${name}_remaining_requests`), await metric(`${name}_requests`)];
  };
  t.strictSame(await left(), [200, 5000]);
  hubs.splice(0, hubs.length, { limit: 100, remaining: 0 });
  await clock.advance(minute);
  await fleet.grouped(neverAborted);
  t.strictSame(await left(), [0, 100]);
  for (const { script } of agents) script.info = cut;
  await clock.advance(minute);
  await fleet.grouped(neverAborted);
  t.strictSame(await left(), [0, 0], 'silent agents say nothing');
});

t.test('reports of agents about their nodes, and credential problems', async (t) => {
  const problem = {
    source: 'docker-config',
    origin: '/var/lib/kubelet/config.json',
    message: 'is not valid JSON',
  };
  const execErrors = { state: 'on', errors: [] };
  const given = { credentialFingerprint: 'a', nodeName: 'n3', credentialProblems: [problem], execErrors };
  const info = () => given;
  const scripts = [
    { node: 'n1', report: { pullMode: 'local' } as const },
    { node: 'n2', report: { amd64Level: 3 } as const },
    { info },
  ];
  const { agents, clock, fleet, discovery } = await setup(t, scripts);
  const found = () => Object.fromEntries(fleet.nodeReports());
  t.strictSame(found(), { n1: { pullMode: 'local' }, n2: { amd64Level: 3 } });
  t.strictSame(Object.fromEntries(fleet.credentialProblems()), { n3: [problem] });
  t.strictSame(Object.fromEntries(fleet.execErrors()), { n3: execErrors });
  const known = fleet.nodeReports();
  await clock.advance(minute);
  await fleet.grouped(neverAborted);
  t.equal(fleet.nodeReports(), known, 'the same object while nothing changes');
  t.notOk(fleet.resolvesShortNames());
  const report = { runtime: { name: 'cri-o', version: '1.36.3' } };
  if (agents[0]) agents[0].script.report = report;
  await clock.advance(minute);
  await fleet.grouped(neverAborted);
  t.strictSame(found(), { n1: report, n2: { amd64Level: 3 } });
  t.ok(fleet.resolvesShortNames());
  const ofNode = (containerRuntimeVersion: string, name: string) =>
    classify({
      metadata: { name },
      status: { nodeInfo: { architecture: 'amd64', containerRuntimeVersion } },
    });
  for (const [runtimes, isBelieved] of [
    [['containerd://2.1.4'], false],
    [['containerd://2.1.4', 'cri-o://1.36.3'], true],
    [[], true],
    [[''], true],
  ] as const) {
    const nodes = runtimes.flatMap((runtime, index) => ofNode(runtime, `n${index + 1}`) ?? []);
    fleet.useNodes(() => groupByClass(nodes, fleet.nodeReports()));
    t.equal(fleet.resolvesShortNames(), isBelieved, JSON.stringify(runtimes));
  }
  discovery.set(agents.slice(1, 2).map(({ url }) => ({ url })));
  t.strictSame(found(), { n2: { amd64Level: 3 } }, 'the report of an agent that left is removed');
});

t.test('attack: an agent cannot report for the node of another agent', async (t) => {
  const claims = [1, 4].map((amd64Level) => ({ node: 'n1', report: { amd64Level: amd64Level as 1 | 4 } }));
  const { fleet, list } = await setup(t, claims);
  t.strictSame([...fleet.nodeReports()], [], 'two claims, and discovery knows no node names');
  list(['n1', 'n2']);
  await fleet.grouped(neverAborted);
  t.strictSame(Object.fromEntries(fleet.nodeReports()), { n1: { amd64Level: 1 }, n2: { amd64Level: 4 } });
});

t.test('an address that moves to another node does not take the report along', async (t) => {
  const { fleet, list } = await setup(t, [{ report: { amd64Level: 1 } }], ['n1']);
  const found = () => Object.fromEntries(fleet.nodeReports());
  t.strictSame(found(), { n1: { amd64Level: 1 } });
  list(['n2']);
  t.strictSame(found(), {});
  await fleet.grouped(neverAborted);
  t.strictSame(found(), { n2: { amd64Level: 1 } });
});

t.test('what an agent says of itself is checked, cleaned and bounded', async (t) => {
  const node = 'worker-3.pool.example';
  const info = { credentialFingerprint: 'f', nodeName: node, architecture: 'arm64' };
  const read = (more: object) => readAgentInfo({ ...info, ...more });
  const cleaned = read({ later: 1, node: { pullMode: 'local', amd64Level: 9, later: 'x' } });
  like(t, cleaned, { fingerprint: 'f', node, architecture: 'arm64', problems: [], execErrors: undefined });
  t.strictSame(cleaned?.report, { pullMode: 'local' });
  for (const nodeName of ['', 'UPPER', 'a b', '-a', 'a-', 'a/b', 'ä', 'n'.repeat(254), 7, null, ['n'], 'a\n'])
    t.equal(read({ nodeName })?.node, undefined, String(nodeName));
  for (const architecture of ['', 'x'.repeat(64), 7, null])
    t.equal(read({ architecture })?.architecture, undefined, String(architecture));
  for (const credentialFingerprint of ['', 'f'.repeat(257), 1, undefined])
    t.equal(read({ credentialFingerprint }), undefined);

  const error = { pod: '0b6c4b9e-6f5d-4c1e-9d55-0f5f2a1d9a77', container: 'a'.repeat(64), program: 'sh' };
  const errorsOf = (execErrors: unknown) => read({ execErrors })?.execErrors;
  t.strictSame(errorsOf({ state: 'no-events', errors: [] }), { state: 'no-events', errors: [] });
  for (const execErrors of [undefined, 'x', { errors: [error] }, { state: 'x', errors: [error] }])
    t.equal(errorsOf(execErrors), undefined, JSON.stringify(execErrors));
  const { program: _, ...nameless } = error;
  const given = [
    { ...error, later: 1 },
    { ...error, program: 'a\nb' },
    { ...error, program: 'x'.repeat(16) },
    { ...error, pod: 'x' },
    { ...error, container: `${error.container}\n` },
    null,
  ];
  t.strictSame(errorsOf({ state: 'on', errors: given }), {
    state: 'on',
    errors: [error, nameless, nameless],
  });
  t.equal(errorsOf({ state: 'on', errors: Array.from({ length: 99 }, () => error) })?.errors.length, 30);
});

t.test('grouped waits for an agent that is silent, until its signal aborts; new agents do not', async (t) => {
  const { agents, fleet, discovery, list, groups } = await setup(t, [
    { fingerprint: 'a' },
    { fingerprint: 'b' },
  ]);
  let isAsked = false;
  const silent = () => {
    isAsked = true;
    return new Promise(() => undefined);
  };
  if (agents[0]) agents[0].script.info = silent;
  discovery.set([]);
  discovery.set(agents.slice(0, 1));
  await until(() => isAsked);
  list();
  await until(async () => (await groups()) === 1);
  const stop = new AbortController();
  let hasReturned = false;
  void fleet.grouped(stop.signal).then(() => (hasReturned = true));
  await settled();
  t.notOk(hasReturned);
  stop.abort();
  await settled();
  t.ok(hasReturned);
});

const gone = /^warn \d no agent answers: images that are not in memory are unknown, and gate no pods/;
const back = /^info 1 agents answer again: unknown images gate pods$/;

t.test('without an agent that answers, the fleet is unavailable after 30 s', async (t) => {
  const { clock, discovery, fleet, metric, agents, list, logged } = await setup(t, [{}]);
  const isShown = () => metric('archwright_fleet_available');
  for (let round = 0; round < 3; round += 1) {
    discovery.set([]);
    await fleet.grouped(neverAborted);
    await clock.advance(25_000);
    t.ok(fleet.isAvailable(), 'a short outage');
    list();
    await fleet.grouped(neverAborted);
  }
  t.strictSame(logged(), []);
  discovery.set([]);
  await fleet.grouped(neverAborted);
  await clock.advance(29_000);
  t.strictSame([fleet.isAvailable(), await isShown()], [true, 1]);
  await clock.advance(1000);
  t.strictSame([fleet.isAvailable(), await isShown()], [false, 0]);
  const alerts = readFileSync('charts/archwright/files/alerts.json', 'utf8');
  t.ok(alerts.includes('"min(archwright_fleet_available) == 0"'), 'an alert follows the metric');
  await clock.advance(600_000);
  like(t, logged(), [gone]);
  list();
  await fleet.grouped(neverAborted);
  t.strictSame([fleet.isAvailable(), await isShown()], [true, 1]);
  like(t, logged(), [gone, back]);
  if (agents[0]) agents[0].script.info = cut;
  await clock.advance(60_000);
  await fleet.grouped(neverAborted);
  t.equal(await metric('archwright_fleet_agents{state="silent"}'), 1);
  t.ok(fleet.isAvailable(), 'not for long');
  await clock.advance(30_000);
  t.notOk(fleet.isAvailable());
  like(t, logged(), [gone, back, gone]);
  fleet.close();
  await clock.advance(10_000);
  t.equal(clock.pending, 0, 'no timer after the end');
});
