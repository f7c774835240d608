/** Labels of the nodes that run agents (number per pool, replacements, nodes that are never labeled), and of CPU levels. */
import t, { type Test } from 'tap';
import {
  createAgentNodes,
  labelLevels,
} from '../../../../src/controller/features/node-labels/node-labels.ts';
import type { Fleet } from '../../../../src/fleet/fleet.ts';
import type { NodeReport } from '../../../../src/nodes/node-report.ts';
import type { Configuration } from '../../../../src/policy/configuration/configuration.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';
import { nodeStatus } from '../../objects.ts';
import { startLeader } from '../../leader.ts';

const label = 'arch.example/agent';
interface NodeOptions {
  readonly pool?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Minutes after the first node. */
  readonly created?: number;
  /** Minutes for which it has not been ready. */
  readonly unready?: number;
  readonly spec?: object;
  readonly os?: string;
  readonly architecture?: string;
}

async function startWorld(t: Test, configuration: Partial<Configuration> = { agentNodes: 2 }) {
  const clock = createFakeClock();
  const start = clock.now() - 86_400_000;
  const reports = new Map<string, NodeReport>();
  const fleet = { nodeReports: () => reports } as Partial<Fleet> as Fleet;
  const test = await startLeader(t, { configuration, clock, fleet });
  const { store, leader } = test;
  const reconcile = createAgentNodes(leader);
  const put = (name: string, options: NodeOptions = {}): void => {
    const { pool = 'blue', labels = {}, created = 0, unready, spec = {}, os = 'linux' } = options;
    const { architecture = 'amd64' } = options;
    const ready = { type: 'Ready', status: unready === undefined ? 'True' : 'Unknown' };
    const since = new Date(clock.now() - (unready ?? 600) * 60_000).toISOString();
    store.put(`/api/v1/nodes/${name}`, {
      metadata: {
        name,
        creationTimestamp: new Date(start + created * 60_000).toISOString(),
        labels: { 'karpenter.sh/nodepool': pool, 'kubernetes.io/arch': architecture, ...labels },
      },
      spec,
      status: { ...nodeStatus(architecture, os), conditions: [{ ...ready, lastTransitionTime: since }] },
    });
  };
  const labelsOf = (name: string) => store.get(`/api/v1/nodes/${name}`)?.metadata.labels ?? {};
  const settledAround = (act: () => Promise<void>) => async (): Promise<void> => {
    await test.settled();
    await act();
    await test.settled();
  };
  return {
    ...test,
    clock,
    reports,
    put,
    labelsOf,
    /** Names of the nodes with the label. */
    labeled: (): readonly string[] =>
      store
        .list('/api/v1/nodes')
        .map(({ metadata: { name } }) => name)
        .filter((name) => labelsOf(name)[label] === 'true')
        .sort(),
    reconcile: settledAround(reconcile),
    reconcileLevels: settledAround(() => labelLevels(leader)),
  };
}

const agent = { [label]: 'true' };

t.test('the oldest nodes of each pool are labeled, up to its number; nothing else changes', async (t) => {
  const { store, put, labeled, labelsOf, reconcile, series } = await startWorld(t);
  put('a1', { created: 3 });
  put('a2', { created: 1 });
  put('a3', { created: 2, labels: { mine: 'yes' } });
  put('b1', { pool: 'green' });
  await reconcile();
  t.strictSame(labeled(), ['a2', 'a3', 'b1'], 'a pool with fewer nodes: all of them');
  t.equal(labelsOf('a3')['mine'], 'yes');
  t.strictSame(
    store
      .writes()
      .map(({ verb, path }) => `${verb} ${path}`)
      .sort(),
    ['a2', 'a3', 'b1'].map((name) => `PATCH /api/v1/nodes/${name}`),
  );
  await reconcile();
  t.equal(store.writes().length, 3, 'a second look changes nothing');
  t.equal(await series('archwright_agent_nodes'), 3);
  t.equal(await series('archwright_agent_pools_uncovered'), 0);

  for (const name of ['c3', 'c1', 'c2']) put(name, { pool: 'new' });
  await reconcile();
  t.strictSame(labeled(), ['a2', 'a3', 'b1', 'c1', 'c2'], 'a new pool gets its nodes; of one age, by name');
});

t.test('which nodes are never labeled', async (t) => {
  const { put, labeled, labelsOf, reconcile, series } = await startWorld(t);
  put('cordoned', { spec: { unschedulable: true } });
  put('windows', { os: 'windows' });
  put('starting', { unready: 1 });
  put('refused', { labels: { [label]: 'false' } });
  put('disrupted', { spec: { taints: [{ key: 'karpenter.sh/disrupted', effect: 'NoSchedule' }] } });
  await reconcile();
  t.strictSame(labeled(), []);
  t.equal(labelsOf('refused')[label], 'false', 'a value set by a person stays');
  t.equal(await series('archwright_agent_pools_uncovered'), 1);
});

t.test('labeled nodes keep their label even if others are older', async (t) => {
  const { store, put, labeled, reconcile } = await startWorld(t, { agentNodes: 1 });
  put('old', { created: 0 });
  put('young', { created: 9, labels: agent });
  await reconcile();
  t.strictSame(labeled(), ['young']);
  t.strictSame(store.writes(), []);
});

t.test('nodes that leave the pool are replaced at once; a surplus label stays for a minute', async (t) => {
  for (const leaving of [
    { spec: { unschedulable: true } },
    { unready: 6 },
    { spec: { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] } },
  ]) {
    const { clock, put, labeled, reconcile } = await startWorld(t);
    put('a1', { labels: agent, ...leaving });
    put('a2', { labels: agent, created: 1 });
    put('a3', { created: 2 });
    await reconcile();
    t.strictSame(labeled(), ['a1', 'a2', 'a3']);
    await clock.advance(59_000);
    await reconcile();
    t.strictSame(labeled(), ['a1', 'a2', 'a3']);
    await clock.advance(1000);
    await reconcile();
    t.strictSame(labeled(), ['a2', 'a3']);
  }
});

t.test(
  'a node that is not ready keeps its place for five minutes, the last of its pool for ever',
  async (t) => {
    const { clock, put, labeled, reconcile, series } = await startWorld(t, { agentNodes: 1 });
    put('a1', { labels: agent, unready: 4 });
    put('a2');
    put('last', { pool: 'green', labels: agent, unready: 60 });
    await reconcile();
    t.strictSame(labeled(), ['a1', 'last']);
    await clock.advance(60_000);
    await reconcile();
    t.strictSame(labeled(), ['a1', 'a2', 'last']);
    await clock.advance(120_000);
    await reconcile();
    t.strictSame(labeled(), ['a2', 'last']);
    t.equal(await series('archwright_agent_pools_uncovered'), 1);
  },
);

t.test('labels are removed if fewer nodes, or all nodes, run agents', async (t) => {
  const { clock, put, labeled, reconcile, configure, series } = await startWorld(t, { agentNodes: 1 });
  for (const [index, name] of ['a1', 'a2', 'a3'].entries()) put(name, { labels: agent, created: index });
  await reconcile();
  await clock.advance(60_000);
  await reconcile();
  t.strictSame(labeled(), ['a1']);
  configure({ agentNodes: 'all' });
  await reconcile();
  t.strictSame(labeled(), [], 'agents run on every node, so no replacement is needed first');
  t.equal(await series('archwright_agent_nodes'), 0);
  t.equal(await series('archwright_agent_pools_uncovered'), 0);
});

t.test('a node that is refused its label keeps only those of its own pool in place', async (t) => {
  const { store, clock, put, labeled, reconcile } = await startWorld(t, { agentNodes: 1 });
  for (const pool of ['blue', 'green']) {
    put(`${pool}-1`, { pool, labels: agent, spec: { unschedulable: true } });
    put(`${pool}-2`, { pool });
  }
  store.fault('PATCH /api/v1/nodes/blue-2', { status: 403 });
  await t.rejects(reconcile(), { code: 'forbidden' });
  await clock.advance(60_000);
  await t.rejects(reconcile(), { code: 'forbidden' });
  t.strictSame(labeled(), ['blue-1', 'green-2']);
});

const levelLabel = 'arch.example/amd64-level';

t.test('nodes get the level that their agent reports', async (t) => {
  const { store, put, reports, labelsOf, reconcileLevels } = await startWorld(t, { amd64LevelLabels: true });
  put('new', { labels: { other: 'x' } });
  put('right', { labels: { [levelLabel]: 'v2' } });
  put('changed', { labels: { [levelLabel]: 'v2' } });
  put('silent', { labels: { [levelLabel]: 'v4' } });
  put('arm', { architecture: 'arm64' });
  put('left');
  reports.set('new', { amd64Level: 3 }).set('right', { amd64Level: 2 }).set('changed', { amd64Level: 4 });
  reports.set('arm', { amd64Level: 4 }).set('silent', { pullMode: 'local' }).set('gone', { amd64Level: 1 });
  reports.set('left', { amd64Level: 3 });
  const end = store.fault('PATCH /api/v1/nodes/left', { status: 404 });
  await reconcileLevels();
  end();
  store.remove('/api/v1/nodes/left');
  const names = ['new', 'right', 'changed', 'silent', 'arm'];
  t.strictSame(
    names.map((name) => labelsOf(name)[levelLabel]),
    ['v3', 'v2', 'v4', 'v4', undefined],
  );
  t.equal(labelsOf('new')['other'], 'x');
  const writes = new Set(store.writes().map(({ path }) => path.split('/').at(-1)));
  t.strictSame(writes, new Set(['changed', 'left', 'new']));
  await reconcileLevels();
  t.equal(store.writes().length, 3, 'an unchanged label is not written again');
});

t.test('switched off, it labels no node and removes its labels', async (t) => {
  const { put, reports, labelsOf, reconcileLevels } = await startWorld(t, { amd64LevelLabels: false });
  put('new');
  put('labeled', { labels: { [levelLabel]: 'v2' } });
  put('other', { labels: { [levelLabel]: 'fast' } });
  reports.set('new', { amd64Level: 3 }).set('labeled', { amd64Level: 2 });
  await reconcileLevels();
  t.strictSame(
    ['new', 'labeled', 'other'].map((name) => labelsOf(name)[levelLabel]),
    [undefined, undefined, 'fast'],
  );
});
