import t from 'tap';
import { done, podPath, stepIn, world } from './support.ts';

const ours = { key: 'arch.example/architecture', operator: 'Equal', value: 'amd64', effect: 'NoSchedule' };
const apps = '/apis/apps/v1/namespaces/shop';

function owned(kind: string, name: string, apiVersion = 'apps/v1') {
  return { ownerReferences: [{ apiVersion, kind, name, uid: `uid-${name}`, controller: true }] };
}

function running(metadata: object, spec: object = { tolerations: [ours] }, status: object = {}): object {
  const onNode = { nodeName: 'n1', containers: [], ...spec };
  return { metadata, spec: onNode, status: { phase: 'Running', ...status } };
}

/** Deployments `web` and `other` with one ReplicaSet each, and a StatefulSet `db`. */
async function workloads(t: Parameters<typeof world>[0]) {
  const test = await world(t);
  for (const name of ['web', 'other']) {
    test.store.put(`${apps}/deployments/${name}`, { spec: {} });
    test.store.put(`${apps}/replicasets/${name}-1`, { metadata: owned('Deployment', name) });
  }
  test.store.put(`${apps}/statefulsets/db`, { spec: {} });
  const restarted = (): readonly string[] =>
    test.store.received(/^PATCH .*apps/).map(({ path }) => path.split('/').slice(-2).join('/'));
  return { ...test, restarted };
}

t.test('it restarts the workloads whose pods have our tolerations, and no others', async (t) => {
  const { store, clean, clock, restarted } = await workloads(t);
  const [web, other] = [owned('ReplicaSet', 'web-1'), owned('ReplicaSet', 'other-1')];
  for (const name of ['ours', 'again']) store.put(podPath(name), running(web));
  const added = { tolerations: [{ ...ours, key: 'kubernetes.io/arch', value: 'arm64' }] };
  const annotations = { 'arch.example/decision': JSON.stringify({ v: 1, imagesKey: 'x', added }) };
  store.put(podPath('recorded'), running({ ...owned('StatefulSet', 'db'), annotations }, added));
  store.put(podPath('annotated-only'), running({ ...other, annotations }, { tolerations: [] }));
  store.put(podPath('none'), running(other, {}));
  store.put(podPath('own'), running(other, added));
  store.put(podPath('waits'), running(other, { nodeName: '', tolerations: [ours] }));
  for (const phase of ['Succeeded', 'Failed'])
    store.put(podPath(phase.toLowerCase()), running(other, undefined, { phase }));
  store.put(podPath('going'), running({ ...other, deletionTimestamp: '2026-01-01T00:00:00Z' }));
  store.put(podPath('alone'), running({}));
  store.put(podPath('daemon'), running(owned('DaemonSet', 'd')));
  store.put(podPath('job'), running(owned('Job', 'j', 'batch/v1')));
  store.put(podPath('mirror'), running(owned('Node', 'n1', 'v1')));
  store.put(podPath('unknown'), running(owned('Rollout', 'r', 'argoproj.io/v1')));
  store.put(podPath('bare'), running(owned('ReplicaSet', 'gone')));

  const dry = await clean({ dryRun: true, restartPods: true });
  t.equal(done(dry)['restarted workloads'], 2);
  t.strictSame(restarted(), []);
  const began = clock.now();
  const report = await clean({ restartPods: true });
  t.equal(report.complete, true);
  t.strictSame(restarted().toSorted(), ['deployments/web', 'statefulsets/db']);
  const template = store.get(`${apps}/deployments/web`)?.spec as {
    readonly template?: { readonly metadata?: { readonly annotations?: Record<string, string> } };
  };
  const at = template.template?.metadata?.annotations?.['kubectl.kubernetes.io/restartedAt'] ?? '';
  t.ok(Date.parse(at) >= began && Date.parse(at) <= clock.now(), at);
  t.strictSame(stepIn(report, 'restarted workloads')?.notes.toSorted(), [
    'pod shop/alone stays: it has no controller that would replace it',
    'pods of DaemonSet shop/d stay',
    'pods of Job shop/j stay',
    'pods of Node shop/n1 stay',
    'pods of ReplicaSet shop/gone stay',
    'pods of Rollout shop/r stay',
  ]);

  await clean();
  t.equal(restarted().length, 2, 'only on request');
});

t.test('workloads restart one after the other, and a refused one does not stop the others', async (t) => {
  const { store, clean, elapsed, restarted } = await workloads(t);
  for (const name of ['web', 'other']) store.put(podPath(name), running(owned('ReplicaSet', `${name}-1`)));
  store.put(podPath('db-0'), running(owned('StatefulSet', 'db')));
  const at: number[] = [];
  const before = (): void => void at.push(elapsed());
  store.fault(/^PATCH .*(?:other|db)$/, { before });
  store.fault(`PATCH ${apps}/deployments/web`, { status: 403, message: 'no right to patch', before });
  const report = await clean({ restartPods: true }, { evictionsPerMinute: 6 });
  t.equal(restarted().length, 3);
  for (const [index, when] of at.entries()) if (index > 0) t.ok(when - (at[index - 1] ?? 0) >= 10_000);
  const { done: count, failures } = stepIn(report, 'restarted workloads') ?? {};
  t.equal(count, 2);
  t.strictSame(failures, [{ what: 'Deployment shop/web', why: '403 no right to patch' }]);
});
