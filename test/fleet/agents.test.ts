/** What the fleet knows of its agents from their `/v1/info`: groups, reports, problems, availability. */
import { setImmediate as settled } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { classify } from '../../src/nodes/classify.ts';
import { groupByClass } from '../../src/nodes/node-classes.ts';
import { requestFor } from '../support/facts.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { until } from '../support/until.ts';
import { startFleet } from './fleet-setup.ts';
import { createAgentList, createPki, startScripted, type Script } from './support.ts';

const request = requestFor('registry.example/team/app:1');
const minute = 60_000;

async function setup(t: Test, scripts: readonly Script[], nodes: readonly (string | undefined)[] = []) {
  const pki = await createPki(t);
  const agents = await Promise.all(scripts.map((script) => startScripted(t, pki, script)));
  const discovery = createAgentList();
  const list = (names = nodes): void => {
    const listed = agents.map(({ url }, index) => ({ url, node: names[index] }));
    discovery.set(listed.map(({ url, node }) => (node === undefined ? { url } : { url, node })));
  };
  list();
  const clock = createFakeClock();
  const { fleet, metric } = await startFleet(t, pki, discovery, { clock });
  await fleet.grouped(neverAborted);
  return {
    agents,
    clock,
    discovery,
    list,
    fleet,
    metric,
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
  await agents[1]?.stop();
  await clock.advance(minute);
  await fleet.grouped(neverAborted);
  t.equal(await groups(), 2);
  discovery.set(agents.slice(0, 1).map(({ url }) => ({ url })));
  await fleet.grouped(neverAborted);
  t.equal(await groups(), 1);
});

t.test('an agent that gives no information is asked again after five seconds', async (t) => {
  let answers = 0;
  const info: Script['info'] = (response) => {
    answers += 1;
    return answers < 4
      ? void response.writeHead(503).end()
      : { credentialFingerprint: 'a', nodeName: 'n1', node: { amd64Level: 2 } };
  };
  const { clock, fleet } = await setup(t, [{ info }]);
  t.equal(fleet.nodeReports().size, 0);
  for (let tick = 0; tick < 4 && fleet.nodeReports().size === 0; tick += 1) {
    await clock.advance(5000);
    await fleet.grouped(neverAborted);
  }
  await until(() => fleet.nodeReports().size === 1);
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
  for (const { script } of agents) script.info = () => 503;
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
  const info = () => ({ credentialFingerprint: 'a', nodeName: 'n3', credentialProblems: [problem] });
  const scripts = [
    { node: 'n1', report: { pullMode: 'local' } as const },
    { node: 'n2', report: { amd64Level: 3 } as const },
    { info },
  ];
  const { agents, clock, fleet, discovery } = await setup(t, scripts);
  const found = () => Object.fromEntries(fleet.nodeReports());
  t.strictSame(found(), { n1: { pullMode: 'local' }, n2: { amd64Level: 3 } });
  t.strictSame(Object.fromEntries(fleet.credentialProblems()), { n3: [problem] });
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

t.test('what an agent says of itself is checked, cleaned and bounded', async (t) => {
  const { agents, clock, fleet, members, groups } = await setup(t, [{ fingerprint: 'z' }, {}]);
  const known = async (info: unknown) => {
    if (agents[1]) agents[1].script.info = () => info;
    await clock.advance(minute);
    await fleet.grouped(neverAborted);
    const group = (await members()).find(({ name }) => name !== 'z');
    const [reports, problems] = [fleet.nodeReports(), fleet.credentialProblems()];
    return { ...group, reports: Object.fromEntries(reports), problems: Object.fromEntries(problems) };
  };
  const nothing = { nodes: [], architectures: [], reports: {}, problems: {} };
  const node = 'worker-3.pool.example';
  const info = { credentialFingerprint: 'f', nodeName: node, architecture: 'arm64' };
  t.strictSame(await known({ ...info, later: 1, node: { pullMode: 'local', amd64Level: 9, later: 'x' } }), {
    name: 'f',
    nodes: [node],
    architectures: ['arm64'],
    reports: { [node]: { pullMode: 'local' } },
    problems: {},
  });
  const names = ['', 'UPPER', 'a b', '-a', 'a-', 'a/b', 'ä', 'n'.repeat(254), 7, null, ['n'], 'a\n'];
  for (const nodeName of names)
    t.strictSame(
      await known({ credentialFingerprint: 'f', nodeName }),
      { name: 'f', ...nothing },
      String(nodeName),
    );
  for (const architecture of ['', 'x'.repeat(64), 7, null])
    t.strictSame(await known({ credentialFingerprint: 'f', architecture }), { name: 'f', ...nothing });

  const problem = { source: 'docker-config', origin: '/a', message: 'is not valid JSON' };
  const read = async (problems: unknown) =>
    (await known({ ...info, credentialProblems: problems })).problems[node];
  t.strictSame(await read([problem, { ...problem, later: 1 }]), [problem, problem]);
  const hostile = [
    null,
    'x',
    { ...problem, source: 'x' },
    { ...problem, origin: 1 },
    { ...problem, message: 1 },
  ];
  for (const problems of [undefined, null, {}, 'x', [], ...hostile.map((one) => [one])])
    t.equal(await read(problems), undefined, JSON.stringify(problems));
  const [cleaned] = (await read([{ ...problem, origin: 'a\nb\u001b[31m', message: 'x'.repeat(9999) }])) ?? [];
  t.strictSame(cleaned, { ...problem, origin: 'a?b?[31m', message: cleaned?.message });
  t.equal(cleaned?.message.length, 400);
  t.equal((await read(Array.from({ length: 50 }, () => problem)))?.length, 10);

  const error = { pod: '0b6c4b9e-6f5d-4c1e-9d55-0f5f2a1d9a77', container: 'a'.repeat(64), program: 'sh' };
  const errorsOf = async (execErrors: unknown) => {
    await known({ ...info, execErrors });
    return fleet.execErrors().get(node);
  };
  t.strictSame(await errorsOf({ state: 'no-events', errors: [] }), { state: 'no-events', errors: [] });
  for (const execErrors of [undefined, 'x', { errors: [error] }, { state: 'x', errors: [error] }])
    t.equal(await errorsOf(execErrors), undefined, JSON.stringify(execErrors));
  const { program: _, ...nameless } = error;
  const given = [
    { ...error, later: 1 },
    { ...error, program: 'a\nb' },
    { ...error, program: 'x'.repeat(16) },
    { ...error, pod: 'x' },
    { ...error, container: `${error.container}\n` },
    null,
  ];
  t.strictSame(await errorsOf({ state: 'on', errors: given }), {
    state: 'on',
    errors: [error, nameless, nameless],
  });
  const many = await errorsOf({ state: 'on', errors: Array.from({ length: 99 }, () => error) });
  t.equal(many?.errors.length, 30);

  t.equal(await groups(), 2);
  for (const credentialFingerprint of ['f'.repeat(257), '', 1, undefined]) {
    const one = await setup(t, [{ info: () => ({ ...info, credentialFingerprint }) }]);
    t.equal(await one.groups(), 0, String(credentialFingerprint));
  }
});

t.test('grouped waits for an agent that is silent, until its signal aborts; new agents do not', async (t) => {
  const { agents, fleet, discovery, list, groups } = await setup(t, [
    { fingerprint: 'a' },
    { fingerprint: 'b' },
  ]);
  let isAsked = false;
  if (agents[0]) agents[0].script.info = () => void (isAsked = true);
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
