/** From a pod's owner to the workload that a person applied, and its number of replicas. */
import t, { type Test } from 'tap';
import { controllerOf, workloadOf } from '../../../src/controller/pods/workload.ts';
import { connectedStore } from '../../kube/support.ts';
import { controllerRef } from '../objects.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { like } from '../../support/like.ts';

const paths: Readonly<Record<string, string>> = {
  ReplicaSet: '/apis/apps/v1/namespaces/shop/replicasets/x',
  StatefulSet: '/apis/apps/v1/namespaces/shop/statefulsets/x',
  ReplicationController: '/api/v1/namespaces/shop/replicationcontrollers/x',
  Job: '/apis/batch/v1/namespaces/shop/jobs/x',
};

async function setup(t: Test) {
  const { store, client } = await connectedStore(t);
  const find = (apiVersion: string, kind: string) => {
    const owner = { apiVersion, kind, name: 'x', uid: 'x', controller: true };
    return workloadOf('shop', owner, { client, signal: neverAborted });
  };
  return { store, find };
}

const owned = (kind: string, controller?: boolean): object => ({
  metadata: { uid: 'x', ownerReferences: [{ apiVersion: 'v1', kind, name: 'c', uid: 'c', controller }] },
});

const cases: [apiVersion: string, kind: string, object: object, top?: string, wanted?: number][] = [
  ['apps/v1', 'ReplicaSet', { spec: { replicas: 3 } }, 'ReplicaSet', 3],
  ['apps/v1', 'StatefulSet', { spec: { replicas: 0 } }, 'StatefulSet', 0],
  ['v1', 'ReplicationController', { spec: { replicas: 1 } }, 'ReplicationController', 1],
  ['batch/v1', 'Job', { spec: { parallelism: 5 } }, 'Job', 5],
  ['batch/v1', 'Job', { spec: { parallelism: 5, completions: 9 }, status: { succeeded: 7 } }, 'Job', 2],
  ['batch/v1', 'Job', { spec: { parallelism: 1, completions: 1 }, ...owned('CronJob', true) }, 'CronJob', 1],
  ['apps/v1', 'ReplicaSet', { spec: { replicas: 3 }, ...owned('ConfigMap') }, 'ReplicaSet', 3],
  ['apps/v1', 'ReplicaSet', { metadata: { uid: 'another' } }],
];

t.test('the workload of each kind of owner', async (t) => {
  const { store, find } = await setup(t);
  for (const [apiVersion, kind, object, top, wanted] of cases) {
    store.put(paths[kind] ?? '', { metadata: { uid: 'x' }, ...object });
    const workload = await find(apiVersion, kind);
    const expected = top === undefined ? undefined : { kind: top, wanted, namespace: 'shop' };
    const { kind: found, namespace } = workload?.top ?? {};
    t.strictSame(
      workload && { kind: found, wanted: workload.wanted, namespace },
      expected,
      JSON.stringify(object),
    );
    store.remove(paths[kind] ?? '');
  }
  like(t, await find('x.example/v1', 'ReplicaSet'), { top: { kind: 'ReplicaSet' }, wanted: undefined });
  t.equal(await find('apps/v1', 'ReplicaSet'), undefined, 'gone');
  const end = store.fault(/^GET/, { status: 403 });
  like(t, await find('apps/v1', 'ReplicaSet'), { top: { kind: 'ReplicaSet' }, wanted: undefined });
  end();
  store.fault(/^GET/, { status: 500 });
  await t.rejects(find('apps/v1', 'ReplicaSet'), { code: 'unavailable' }, 'no answer');
});

t.test('an owner with an impossibly long name is ignored', (t) => {
  const owner = controllerRef('ReplicaSet', 'x'.repeat(253), { uid: 'u' });
  t.strictSame(controllerOf({ metadata: { ownerReferences: [owner] } }), owner);
  const forged = { ...owner, uid: 'u'.repeat(1_000_000) };
  t.equal(controllerOf({ metadata: { ownerReferences: [forged] } }), undefined);
  t.end();
});
