/** From a pod's owner to the workload that a person applied, its number of replicas, and what a Job may lose. */
import t, { type Test } from 'tap';
import {
  controllerOf,
  daemonTemplateOf,
  lossesLeft,
  workloadOf,
} from '../../../src/controller/pods/workload.ts';
import { connectedStore } from '../../kube/support.ts';
import {
  evictions,
  podPath,
  putPod,
  startDeleting,
  startWorld,
  type World,
} from '../features/misplaced/setup.ts';
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

t.test('the template of an owner of another API group is not read', async (t) => {
  const { store, client } = await connectedStore(t);
  store.put('/apis/apps/v1/namespaces/shop/daemonsets/x', { metadata: { uid: 'x' }, spec: { template: {} } });
  const ofGroup = (group: string) => {
    const owner = controllerRef('DaemonSet', 'x', { apiVersion: `${group}/v1`, uid: 'x' });
    return daemonTemplateOf({ namespace: 'shop', owner }, { client, signal: neverAborted });
  };
  t.strictSame(await ofGroup('apps'), {});
  t.equal(await ofGroup('x.example'), 'unknown');
});

t.test('an owner with an impossibly long name is ignored', (t) => {
  const owner = controllerRef('ReplicaSet', 'x'.repeat(253), { uid: 'u' });
  t.strictSame(controllerOf({ metadata: { ownerReferences: [owner] } }), owner);
  const forged = { ...owner, uid: 'u'.repeat(1_000_000) };
  t.equal(controllerOf({ metadata: { ownerReferences: [forged] } }), undefined);
  t.end();
});

const about = (action: string, type = 'DisruptionTarget', status?: string): object => ({
  action,
  onPodConditions: [{ type, ...(status && { status }) }],
});
const onExit = { action: 'FailJob', onExitCodes: { operator: 'In', values: [1] } };

const noneLeft = { backoffLimit: 0 };
const perIndex = { backoffLimit: 100, backoffLimitPerIndex: 2 };
const rules = (...all: object[]): object => ({ podFailurePolicy: { rules: all } });
const opposite = [about('Ignore', undefined, 'False'), about('Ignore', 'ConfigIssue')];

const jobs: readonly [name: string, left: number, spec?: object, status?: object, indexFailures?: string][] =
  [
    ['the usual', 6],
    ['none', 0, noneLeft],
    ['some have failed', 1, { backoffLimit: 4 }, { failed: 3 }],
    [
      'some are not counted yet',
      1,
      { backoffLimit: 4 },
      { failed: 1, uncountedTerminatedPods: { failed: ['a', 'b'] } },
    ],
    ['an empty list of uncounted pods', 6, {}, { uncountedTerminatedPods: {} }],
    ['more than allowed', 0, { backoffLimit: 1 }, { failed: 3 }],
    ['of an index', 2, perIndex],
    ['of an index that failed before', 0, perIndex, {}, '2'],
    ['of an index, and fewer of the Job', 1, { ...perIndex, backoffLimit: 1 }],
    [
      'evictions do not count',
      Infinity,
      { ...noneLeft, ...rules(onExit, about('Ignore', undefined, 'True')) },
    ],
    ['a rule about the opposite, and about another condition', 0, { ...noneLeft, ...rules(...opposite) }],
    ['evictions count as any failure', 3, { backoffLimit: 3, ...rules(about('Count'), about('Ignore')) }],
    ['one ends the Job', 0, rules(about('FailJob'))],
    ['one ends the index', 0, rules(about('FailIndex'))],
    ['a policy without rules', 6, { podFailurePolicy: { rules: null } }],
  ];

t.test('the number of pods that a Job may lose', (t) => {
  for (const [name, left, spec = {}, status = {}, failures] of jobs) {
    const annotations = failures ? { 'batch.kubernetes.io/job-index-failure-count': failures } : {};
    t.equal(
      lossesLeft({ spec, status }, { metadata: { annotations }, spec: { containers: [] } }),
      left,
      name,
    );
  }
  t.end();
});

const ofJob = controllerRef('Job', 'work', { apiVersion: 'batch/v1', uid: 'job-uid' });

function putJob({ store }: Pick<World, 'store'>, backoffLimit: number, failed: number): void {
  store.put('/apis/batch/v1/namespaces/shop/jobs/work', {
    metadata: { uid: 'job-uid' },
    spec: { parallelism: 3, backoffLimit },
    status: { failed },
  });
}

t.test('a pod whose eviction would end its Job stays, with one event', async (t) => {
  const world = await startWorld(t);
  putJob(world, 0, 0);
  putPod(world.store, 'work-a', { owner: ofJob });
  await world.afterGrace();
  await world.after(20_000);
  t.strictSame(world.store.writes(), []);
  const message = /its Job .* would fail permanently/;
  like(t, world.events, [
    { reason: 'MisplacedPod', about: { kind: 'Pod', name: 'work-a' }, message },
    { reason: 'MisplacedPod', about: { kind: 'Job', name: 'work' } },
  ]);
  t.equal(world.events.length, 2);
  t.equal(await world.series('archwright_misplaced_pods_total{outcome="last-try"}'), 1);
});

t.test('a Job loses no more pods than it may, even before it has counted them', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  putJob(world, 2, 0);
  for (const name of ['work-a', 'work-b', 'work-c', 'work-d']) putPod(store, name, { owner: ofJob });
  // It terminates, and the Job has not counted it yet.
  startDeleting(store, 'work-d');
  let [limit, failed] = [2, 0];
  store.fault(evictions, { before: () => putJob(world, limit, ++failed) });
  await world.afterGrace();
  t.equal(store.received(evictions).length, 1, 'one terminates, so one is evicted');
  const hasEvent = (): boolean => world.events.some(({ reason }) => reason === 'MisplacedPod');
  t.notOk(hasEvent(), 'no event while this may still change');

  putJob(world, limit, ++failed);
  store.remove(podPath('work-d'));
  await world.after(20_000);
  t.equal(store.received(evictions).length, 1);
  t.ok(hasEvent());

  limit = 4;
  putJob(world, limit, failed);
  await world.after(10 * 60_000);
  t.equal(store.received(evictions).length, 3, 'it may lose two more');
});
