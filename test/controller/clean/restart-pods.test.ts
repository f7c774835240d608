import t from 'tap';
import type { KubeStore } from '../../support/kube-store.ts';
import { done, podPath, stepIn, world } from './support.ts';

const ours = { key: 'arch.example/architecture', operator: 'Equal', value: 'amd64', effect: 'NoSchedule' };
const replicaSet = '/apis/apps/v1/namespaces/shop/replicasets';

function owned(kind: string, name: string, apiVersion = 'apps/v1') {
  return { ownerReferences: [{ apiVersion, kind, name, uid: `uid-${name}`, controller: true }] };
}

function running(metadata: object, spec: object = { tolerations: [ours] }, status: object = {}): object {
  const onNode = { nodeName: 'n1', containers: [], ...spec };
  return { metadata, spec: onNode, status: { phase: 'Running', ...status } };
}

function evicted(store: KubeStore): string[] {
  return store.received(/^POST .*\/eviction$/).map(({ path }) => path.split('/').at(-2) ?? '');
}

t.test('it restarts the pods that have our tolerations, and no others', async (t) => {
  const { store, clean } = await world(t);
  const web = owned('ReplicaSet', 'web');
  store.put(`${replicaSet}/web`, { spec: { replicas: 1 }, status: { readyReplicas: 1 } });
  store.put(podPath('ours'), running(web));
  const added = { tolerations: [{ ...ours, key: 'kubernetes.io/arch', value: 'arm64' }] };
  const annotations = { 'arch.example/decision': JSON.stringify({ v: 1, imagesKey: 'x', added }) };
  store.put(podPath('recorded'), running({ ...web, annotations }, added));
  store.put(podPath('annotated-only'), running({ ...web, annotations }, { tolerations: [] }));
  store.put(podPath('none'), running(web, {}));
  store.put(podPath('own'), running(web, added));
  store.put(podPath('waits'), running(web, { nodeName: '', tolerations: [ours] }));
  store.put(podPath('ended'), running(web, undefined, { phase: 'Succeeded' }));
  store.put(podPath('failed'), running(web, undefined, { phase: 'Failed' }));
  store.put(podPath('going'), running({ ...web, deletionTimestamp: '2026-01-01T00:00:00Z' }));
  store.put(podPath('alone'), running({}));
  store.put(podPath('daemon'), running(owned('DaemonSet', 'd')));
  store.put(podPath('job'), running(owned('Job', 'j', 'batch/v1')));
  store.put(podPath('mirror'), running(owned('Node', 'n1', 'v1')));
  store.put(podPath('unknown'), running(owned('Rollout', 'r', 'argoproj.io/v1')));

  const dry = await clean({ dryRun: true, restartPods: true });
  t.equal(done(dry)['restarted pods'], 3);
  t.same(evicted(store), []);
  const report = await clean({ restartPods: true });
  t.equal(report.complete, true);
  t.same(evicted(store).sort(), ['ours', 'recorded', 'unknown']);
  const notes = stepIn(report, 'restarted pods')?.notes.join('\n') ?? '';
  for (const word of ['shop/alone', 'DaemonSets', 'Jobs', 'mirror']) t.match(notes, word);
  t.match(store.received(/eviction$/)[0]?.json, {
    kind: 'Eviction',
    deleteOptions: { preconditions: { uid: /./ } },
  });

  await clean();
  t.equal(evicted(store).length, 3, 'only on request');
});

t.test('the pods of a workload restart one after the other, within the rate limit', async (t) => {
  const { store, clean, elapsed } = await world(t);
  const at: [string, number][] = [];
  let ready = 3;
  for (const name of ['a', 'b']) {
    store.put(`${replicaSet}/${name}`, { spec: { replicas: 3 }, status: { readyReplicas: 3 } });
    for (const index of [1, 2, 3]) store.put(podPath(`${name}${index}`), running(owned('ReplicaSet', name)));
  }
  store.fault(/eviction$/, { before: ({ path }) => void at.push([path.split('/').at(-2) ?? '', elapsed()]) });
  store.fault(`GET ${replicaSet}/a`, {
    before: () => {
      ready = elapsed() < 60_000 ? 2 : 3;
      store.put(`${replicaSet}/a`, { spec: { replicas: 3 }, status: { readyReplicas: ready } });
    },
  });
  const report = await clean({ restartPods: true }, { evictionsPerMinute: 30 });
  t.equal(report.complete, true);
  t.equal(at.map(([name]) => name.slice(0, 1)).join(''), 'abbbaa');
  for (const [index, [, when]] of at.entries())
    if (index > 0) t.ok(when - (at[index - 1]?.[1] ?? 0) >= 2000, 'at least two seconds apart');
  t.ok((at[4]?.[1] ?? 0) >= 60_000, 'the second pod of a, once a is ready again');
});

t.test('it respects disruption budgets, and gives up waiting for them after ten minutes', async (t) => {
  const { store, clean, elapsed } = await world(t);
  for (const name of ['a', 'b']) store.put(podPath(name), running(owned('ReplicaSet', name)));
  store.evictions(podPath('a'), { status: 429 }, { status: 429, retryAfter: 10 });
  store.evictions(podPath('b'), ...Array.from({ length: 1000 }, () => ({ status: 429 })));
  const report = await clean({ restartPods: true });
  t.equal(report.complete, false);
  t.equal(store.get(podPath('a')), undefined);
  t.ok(store.get(podPath('b')));
  t.match(stepIn(report, 'restarted pods'), {
    done: 1,
    failures: [{ what: 'ReplicaSet shop/b', why: /1 pods left: .*disruption budget/ }],
  });
  t.ok(elapsed() > 600_000 && elapsed() < 640_000);
});

t.test('pods that are replaced, disappear, or may not be evicted', async (t) => {
  const { store, clean } = await world(t);
  for (const name of ['a', 'b', 'c', 'd']) store.put(podPath(name), running(owned('Rollout', name, 'x/v1')));
  store.fault(/pods\/a\/eviction$/, { status: 409, times: 1 });
  store.fault(/pods\/b\/eviction$/, { before: () => store.remove(podPath('b')) });
  store.fault(/pods\/c\/eviction$/, { status: 403 });
  const report = await clean({ restartPods: true });
  t.match(stepIn(report, 'restarted pods'), { done: 3, failures: [{ what: 'pod shop/c' }] });
  t.equal(store.get(podPath('d')), undefined);
});

const readyStatus = { conditions: [{ type: 'Ready', status: 'True' }] };

for (const { title, kind, apiVersion, status } of [
  { title: 'of an unknown kind', kind: 'CloneSet', apiVersion: 'apps.kruise.io/v1alpha1' },
  { title: 'that may not be read', kind: 'ReplicaSet', apiVersion: 'apps/v1', status: 403 },
]) {
  t.test(`a workload ${title}: it is complete when its pods are ready`, async (t) => {
    const { store, clean, elapsed } = await world(t);
    if (status) store.fault(/replicasets/, { status });
    const owner = owned(kind, 'web', apiVersion);
    const put = (name: string, of: object, ready: boolean, tolerations: object[] = []): void =>
      void store.put(podPath(name), running(of, { tolerations }, ready ? readyStatus : {}));
    for (const name of ['a', 'b', 'c']) put(name, owner, true, [ours]);
    // A pod that was not ready before, and a pod of another owner, do not delay the restarts.
    put('broken', owner, false);
    put('other', owned(kind, 'other', apiVersion), true);
    const at: number[] = [];
    store.fault(/eviction$/, { before: () => void at.push(elapsed()) });
    // Its successor takes half a minute to become ready.
    store.fault(/^GET \/api\/v1\/namespaces\/shop\/pods$/, {
      before: () => {
        const last = at.at(-1) ?? 0;
        put(`next-${at.length}`, owner, elapsed() >= last + 30_000);
      },
    });
    const report = await clean({ restartPods: true });
    t.equal(report.complete, true, JSON.stringify(report));
    t.same(evicted(store).toSorted(), ['a', 'b', 'c']);
    for (const [index, when] of at.entries())
      if (index > 0) t.ok(when - (at[index - 1] ?? 0) >= 30_000, `after ${when - (at[index - 1] ?? 0)} ms`);
    const polls = store.received(/^GET \/api\/v1\/namespaces\/shop\/pods$/).length;
    t.ok(polls < 10, 'it polls at growing intervals');
  });
}

t.test('it gives up on a workload that creates no successors', async (t) => {
  const { store, clean } = await world(t);
  const owner = owned('Workflow', 'build', 'argoproj.io/v1alpha1');
  for (const name of ['a', 'b']) store.put(podPath(name), running(owner, undefined, readyStatus));
  const report = await clean({ restartPods: true });
  t.equal(evicted(store).length, 1);
  t.match(stepIn(report, 'restarted pods')?.failures, [
    { what: 'Workflow shop/build', why: '1 pods left: 1 of 2 pods are ready' },
  ]);
});

t.test('a list that restarts counts no pod twice', async (t) => {
  const { store, clean } = await world(t);
  const owner = owned('CloneSet', 'web', 'apps.kruise.io/v1alpha1');
  for (let n = 0; n < 600; n += 1)
    store.put(podPath(`p${n}`), running(owner, { tolerations: n < 2 ? [ours] : [] }, readyStatus));
  const compactAtSecondPage = (path: RegExp): void => {
    let pages = 0;
    store.fault(path, {
      before: ({ query }) => {
        if (query.get('fieldSelector') !== 'spec.nodeName=' && (pages += 1) === 2) store.compact();
      },
    });
  };
  compactAtSecondPage(/^GET \/api\/v1\/pods$/);
  compactAtSecondPage(/^GET \/api\/v1\/namespaces\/shop\/pods$/);
  let evictions = 0;
  store.fault(/eviction$/, {
    before: () => {
      evictions += 1;
      if (evictions === 1) store.put(podPath('next-1'), running(owner, {}, readyStatus));
    },
  });
  const report = await clean({ restartPods: true });
  t.equal(report.complete, true, JSON.stringify(report));
  t.equal(done(report)['restarted pods'], 2);
  t.equal(evictions, 2);
});
