/** Events on the agents' DaemonSet report credentials that nodes do not use. */
import t, { type Test } from 'tap';
import { credentialProblems } from '../../../../src/controller/features/credential-problems/credential-problems.ts';
import type { SourceProblem } from '../../../../src/credentials/credential.ts';
import { type Fleet } from '../../../../src/fleet/fleet.ts';
import type { NodeReport } from '../../../../src/nodes/node-report.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';
import { controllerRef, putPod } from '../../objects.ts';
import { leadThroughout, startLeader, type TestLeader } from '../../leader.ts';

const agentsOf = (name: string) => controllerRef('DaemonSet', name, { uid: `uid-of-${name}` });

const put = ({ store }: TestLeader, node: string, owner = agentsOf('archwright-agent'), spec: object = {}) =>
  putPod(store, `${owner.name}-${node}`, {
    namespace: 'archwright',
    node,
    owner,
    spec: { serviceAccountName: 'archwright-agent', ...spec },
  });

const problem = (origin: string): SourceProblem => ({
  source: 'docker-config',
  origin,
  message: 'is not valid JSON',
});

async function scripted(t: Test, grouped = Promise.resolve()) {
  const clock = createFakeClock();
  const byNode = new Map<string, readonly SourceProblem[]>();
  const reports = new Map<string, NodeReport>();
  const fleet = {
    credentialProblems: () => byNode,
    nodeReports: () => reports,
    grouped: () => grouped,
  } as unknown as Fleet;
  const test = await startLeader(t, { fleet, clock });
  const start = async (): Promise<void> => {
    await test.settled();
    leadThroughout(t, credentialProblems, test);
    await look();
  };
  /** Agents report about once a minute; it looks more often. */
  const look = (): Promise<void> => clock.advance(15_000);
  return { ...test, test, clock, byNode, reports, start, look };
}

t.test('nodes of a DaemonSet with the same problem share an event, repeated every half hour', async (t) => {
  const { test, clock, byNode, events, start, look } = await scripted(t);
  for (const node of ['n2', 'n1']) put(test, node);
  put(test, 'n3', agentsOf('archwright-agent-cloud'));
  put(test, 'n1', agentsOf('other'), { serviceAccountName: 'other' });
  await start();
  t.strictSame(events, []);
  for (const node of ['n1', 'n2', 'n3', 'gone']) byNode.set(node, [problem('/a')]);
  byNode.set('n1', [problem('/a'), problem('/b')]);
  await look();
  const newEvents = () => events.splice(0).map(({ about, message }) => `${about.name} ${message}`);
  const first = [
    'archwright-agent n1; n2: credentials are not used: /a: is not valid JSON',
    'archwright-agent n1: credentials are not used: /b: is not valid JSON',
    'archwright-agent-cloud n3: credentials are not used: /a: is not valid JSON',
  ];
  t.strictSame(newEvents().sort(), first.sort());
  t.equal(await test.series('archwright_credential_problems'), 3);
  await clock.advance(29 * 60_000);
  t.strictSame(newEvents(), [], 'not repeated yet');
  byNode.delete('n3');
  await clock.advance(60_000);
  t.strictSame(newEvents().sort(), first.slice(0, 2).sort());
  byNode.clear();
  await look();
  t.equal(await test.series('archwright_credential_problems'), 0);
  byNode.set('n1', [problem('/a')]);
  await look();
  t.equal(newEvents().length, 1, 'at once if the problem returns');
});

t.test('agents that read the files of another runtime than the kubelet uses', async (t) => {
  const { test, reports, events, start } = await scripted(t);
  const cases = [
    ['n1', 'cri-o://1.34.1', 'containerd'],
    ['n2', 'cri-o://1.34.1', 'cri-o'],
    ['n3', 'docker://28.0.1', 'containerd'],
    ['n4', 'containerd://2.1.4', undefined],
  ] as const;
  for (const [node, containerRuntimeVersion, name] of cases) {
    const nodeInfo = { architecture: 'amd64', operatingSystem: 'linux', containerRuntimeVersion };
    test.store.put(`/api/v1/nodes/${node}`, { metadata: { name: node }, status: { nodeInfo } });
    if (name !== undefined) reports.set(node, { runtime: { name, version: 'unknown' } });
    put(test, node);
  }
  await start();
  t.strictSame(
    events.map(({ message }) => message),
    [
      'n1: credentials are not used: container runtime: the kubelet uses cri-o, and the agent reads the configuration of containerd: set runtime = "cri-o" for these nodes',
    ],
  );
});

t.test('before the agents have answered, nothing is said about problems', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { test, start, look } = await scripted(t, promise);
  await start();
  const info = () => test.series('archwright_credential_problems_info{ids=""}');
  t.equal(await info(), undefined);
  resolve();
  await look();
  t.equal(await info(), 1);
});

t.test('many problems lead to few events', async (t) => {
  const { test, byNode, events, start } = await scripted(t);
  for (let n = 0; n < 60; n += 1) {
    put(test, `worker-${n}`);
    byNode.set(`worker-${n}`, [problem('/same'), problem(`/own-${n}`)]);
  }
  await start();
  t.equal(events.length, 20);
  for (const { message } of events) t.ok(message.length < 1024);
  t.match(events[0]?.message, /^worker-0; worker-1; .*; and \d+ more: credentials/);
});
