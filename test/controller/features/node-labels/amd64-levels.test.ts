/** Labels nodes with the CPU level that agents report, and changes nothing else. */
import t, { type Test } from 'tap';
import { labelLevels } from '../../../../src/controller/features/node-labels/node-labels.ts';
import type { Fleet } from '../../../../src/fleet/fleet.ts';
import type { NodeReport } from '../../../../src/nodes/node-report.ts';
import { startLeader } from '../../leader.ts';

const label = 'arch.example/amd64-level';

async function startWorld(t: Test, amd64LevelLabels = true) {
  const reports = new Map<string, NodeReport>();
  const fleet: Pick<Fleet, 'nodeReports'> = { nodeReports: () => reports };
  const test = await startLeader(t, { configuration: { amd64LevelLabels } });
  const { store } = test;
  const leader = { ...test.leader, fleet: fleet as Fleet };
  const put = (name: string, architecture = 'amd64', labels: Record<string, string> = {}): void =>
    void store.put(`/api/v1/nodes/${name}`, {
      metadata: { name, labels: { other: 'x', ...labels } },
      status: { nodeInfo: { architecture, operatingSystem: 'linux' } },
    });
  return {
    ...test,
    leader,
    reports,
    put,
    labelOf: (name: string) => store.get(`/api/v1/nodes/${name}`)?.metadata.labels?.[label],
    reconcile: async (): Promise<void> => {
      await test.settled();
      await labelLevels(leader);
      await test.settled();
    },
  };
}

t.test('nodes get the level that their agent reports', async (t) => {
  const { store, put, reports, labelOf, reconcile } = await startWorld(t);
  put('new');
  put('right', 'amd64', { [label]: 'v2' });
  put('changed', 'amd64', { [label]: 'v2' });
  put('silent', 'amd64', { [label]: 'v4' });
  put('arm', 'arm64');
  reports.set('new', { amd64Level: 3 }).set('right', { amd64Level: 2 }).set('changed', { amd64Level: 4 });
  reports.set('arm', { amd64Level: 4 }).set('silent', { pullMode: 'local' }).set('gone', { amd64Level: 1 });
  put('left');
  reports.set('left', { amd64Level: 3 });
  const end = store.fault('PATCH /api/v1/nodes/left', { status: 404 });
  await reconcile();
  end();
  store.remove('/api/v1/nodes/left');
  const names = ['new', 'right', 'changed', 'silent', 'arm'];
  t.strictSame(names.map(labelOf), ['v3', 'v2', 'v4', 'v4', undefined]);
  t.equal(store.get('/api/v1/nodes/new')?.metadata.labels?.['other'], 'x');
  const writes = store.writes().filter(({ path }) => !path.endsWith('left'));
  t.strictSame(writes.map(({ path }) => path).sort(), ['/api/v1/nodes/changed', '/api/v1/nodes/new']);
  await reconcile();
  t.equal(store.writes().length, writes.length + 1, 'an unchanged label is not written again');
});

t.test('switched off, it labels no node and removes its labels', async (t) => {
  const { put, reports, labelOf, reconcile } = await startWorld(t, false);
  put('new');
  put('labeled', 'amd64', { [label]: 'v2' });
  put('other', 'amd64', { [label]: 'fast' });
  reports.set('new', { amd64Level: 3 }).set('labeled', { amd64Level: 2 });
  await reconcile();
  t.strictSame(['new', 'labeled', 'other'].map(labelOf), [undefined, undefined, 'fast']);
});
