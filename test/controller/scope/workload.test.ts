/** From a pod's owner to what a person applied, and how many pods the owner wants. */
import t from 'tap';
import { workloadOf } from '../../../src/controller/scope/workload.ts';
import { createKubeClient } from '../../../src/kube/api/client.ts';
import { startKubeStore } from '../../support/kube-store.ts';

const base = '/namespaces/shop';
const cases: readonly {
  readonly apiVersion: string;
  readonly kind: string;
  readonly path?: string;
  readonly object?: object;
  readonly status?: number;
  /** `undefined`: gone. */
  readonly found?: { readonly kind: string; readonly wanted?: number };
}[] = [
  {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    path: `/apis/apps/v1${base}/replicasets/x`,
    object: { spec: { replicas: 3 } },
    found: { kind: 'ReplicaSet', wanted: 3 },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    path: `/apis/apps/v1${base}/statefulsets/x`,
    object: { spec: { replicas: 0 } },
    found: { kind: 'StatefulSet', wanted: 0 },
  },
  {
    apiVersion: 'v1',
    kind: 'ReplicationController',
    path: `/api/v1${base}/replicationcontrollers/x`,
    object: { spec: { replicas: 1 } },
    found: { kind: 'ReplicationController', wanted: 1 },
  },
  {
    apiVersion: 'batch/v1',
    kind: 'Job',
    path: `/apis/batch/v1${base}/jobs/x`,
    object: { spec: { parallelism: 5 } },
    found: { kind: 'Job', wanted: 5 },
  },
  {
    apiVersion: 'batch/v1',
    kind: 'Job',
    path: `/apis/batch/v1${base}/jobs/x`,
    object: { spec: { parallelism: 5, completions: 9 }, status: { succeeded: 7 } },
    found: { kind: 'Job', wanted: 2 },
  },
  {
    apiVersion: 'batch/v1',
    kind: 'Job',
    path: `/apis/batch/v1${base}/jobs/x`,
    object: {
      spec: { parallelism: 1, completions: 1 },
      metadata: {
        ownerReferences: [{ apiVersion: 'batch/v1', kind: 'CronJob', name: 'c', uid: 'c', controller: true }],
      },
    },
    found: { kind: 'CronJob', wanted: 1 },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    path: `/apis/apps/v1${base}/replicasets/x`,
    object: {
      spec: { replicas: 3 },
      metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: 'c' }] },
    },
    found: { kind: 'ReplicaSet', wanted: 3 },
  },
  { apiVersion: 'x.example/v1', kind: 'ReplicaSet', found: { kind: 'ReplicaSet' } },
  { apiVersion: 'apps/v1', kind: 'ReplicaSet' },
  {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    path: `/apis/apps/v1${base}/replicasets/x`,
    object: { metadata: { uid: 'another' } },
  },
  { apiVersion: 'apps/v1', kind: 'ReplicaSet', status: 403, found: { kind: 'ReplicaSet' } },
];

for (const [index, { apiVersion, kind, path, object, status, found }] of cases.entries()) {
  void t.test(`${index}: ${apiVersion} ${kind}: ${found?.kind ?? 'gone'}`, async (t) => {
    const store = await startKubeStore();
    const client = createKubeClient({ access: store.access, userAgent: 'test' });
    t.teardown(async () => {
      client.close();
      await store.close();
    });
    if (path) {
      const { metadata = {}, ...rest } = object as { metadata?: object };
      store.put(path, { ...rest, metadata: { uid: 'x', ...metadata } });
    }
    if (status) store.fault(/^GET/, { status });
    const owner = { apiVersion, kind, name: 'x', uid: 'x', controller: true };
    const workload = await workloadOf('shop', owner, { client, signal: AbortSignal.timeout(10_000) });
    t.same(
      workload && { kind: workload.top.kind, wanted: workload.wanted },
      found && { wanted: undefined, ...found },
    );
    if (workload) t.equal(workload.top.namespace, 'shop');
  });
}

void t.test('no answer', async (t) => {
  const store = await startKubeStore();
  const client = createKubeClient({ access: store.access, userAgent: 'test' });
  t.teardown(async () => {
    client.close();
    await store.close();
  });
  store.fault(/^GET/, { status: 500 });
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'x', uid: 'x' };
  await t.rejects(workloadOf('shop', owner, { client, signal: AbortSignal.timeout(10_000) }), {
    code: 'unavailable',
  });
});
