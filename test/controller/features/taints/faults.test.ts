/** Taints despite errors of the API server, other writers, and a leader that ends. */
import t from 'tap';
import { KubeError } from '../../../../src/kube/api/errors.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';
import type { KubeStore, StoredObject } from '../../../support/kube-store.ts';
import { key, putNode, putPod, startWorld, taintOf, tolerationOf, type World } from './setup.ts';
import { like } from '../../../support/like.ts';

const podPath = '/api/v1/namespaces/shop/pods/a';
const nodePath = '/api/v1/nodes/arm-1';

async function onePod(t: Parameters<typeof startWorld>[0]): Promise<World> {
  const world = await startWorld(t);
  putPod(world.store, 'a', 'arm-1');
  await world.settled();
  return world;
}

t.test('a pod that changed meanwhile is patched in its new form', async (t) => {
  const world = await onePod(t);
  world.store.fault(`PATCH ${podPath}`, {
    times: 1,
    before: () => putPod(world.store, 'a', 'arm-1', { tolerations: [{ key: 'theirs', operator: 'Exists' }] }),
  });
  await world.reconcilePods();
  t.strictSame(world.tolerations('a'), [{ key: 'theirs', operator: 'Exists' }, tolerationOf('arm64')]);
  t.strictSame(world.taints('arm-1'), [taintOf('arm64')]);
});

t.test('a pod that got the toleration meanwhile is not patched', async (t) => {
  const world = await onePod(t);
  const { store } = world;
  store.fault(`PATCH ${podPath}`, {
    times: 1,
    before: () => putPod(store, 'a', 'arm-1', { tolerations: [{ operator: 'Exists' }] }),
  });
  await world.reconcilePods();
  t.strictSame(world.tolerations('a'), [{ operator: 'Exists' }]);
  t.equal(store.received(`PATCH ${podPath}`).length, 1);
});

t.test('a new pod of the same name is not patched', async (t) => {
  const world = await onePod(t);
  const { store } = world;
  store.fault(`PATCH ${podPath}`, {
    times: 1,
    before: () => {
      store.remove(podPath);
      putPod(store, 'a', 'elsewhere', { tolerations: [] });
    },
  });
  await world.reconcilePods();
  t.strictSame(world.tolerations('a'), []);
});

t.test('a deleted pod does not block the taint', async (t) => {
  for (const when of ['before', 'between']) {
    const world = await onePod(t);
    const { store } = world;
    const remove = (): void => store.remove(podPath);
    if (when === 'before') store.fault(`PATCH ${podPath}`, { times: 1, before: remove });
    else {
      store.fault(`PATCH ${podPath}`, { times: 1, status: 409 });
      store.fault(`GET ${podPath}`, { times: 1, before: remove });
    }
    await world.reconcilePods();
    t.strictSame(world.taints('arm-1'), [taintOf('arm64')], when);
  }
});

t.test('a pod that the API server refuses to patch blocks the taint', async (t) => {
  const world = await onePod(t);
  putPod(world.store, 'b', 'arm-1');
  const end = world.store.fault(`PATCH ${podPath}`, { status: 403, message: 'a policy says no' });
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), []);
  t.equal(world.tolerations('b').length, 2, 'other pods get their toleration');
  like(t, world.events, [
    { reason: 'TaintHeldBack', about: { kind: 'Pod', name: 'a' }, message: /a policy says no/ },
  ]);
  t.equal(await world.series('archwright_taint_blockers{reason="pods"}'), 1);
  end();
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), [taintOf('arm64')]);
});

t.test('a pod that changes all the time blocks the taint, and delays no other pod', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  putPod(store, 'a', 'arm-1');
  const others = Array.from({ length: 10 }, (_, index) => `b${index}`);
  for (const name of others) putPod(store, name, 'arm-1');
  let change = 0;
  const end = store.fault(`PATCH ${podPath}`, {
    before: () => putPod(store, 'a', 'arm-1', { labels: { change: String((change += 1)) } }),
  });
  await world.settled();
  await world.reconcilePods();
  for (const name of others) t.equal(world.tolerations(name).length, 2, name);
  t.strictSame(world.taints('arm-1'), []);
  like(t, world.events, [{ reason: 'TaintHeldBack', about: { name: 'a' }, message: /has been modified/ }]);
  end();
  await world.settled();
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), [taintOf('arm64')]);
});

t.test('if every patch is refused, the reconcile stops early', async (t) => {
  const world = await startWorld(t);
  for (let n = 0; n < 60; n += 1) putPod(world.store, `p${n}`, 'arm-1');
  world.store.fault(/^PATCH .*\/pods\//, { status: 403 });
  await world.reconcilePods();
  t.ok(world.store.writes().length <= 24, `${world.store.writes().length} requests`);
  t.strictSame(world.taints('arm-1'), []);
});

t.test('a refused pod is retried with back-off, and its event is repeated', async (t) => {
  const clock = createFakeClock();
  const world = await startWorld(t, { clock });
  const { store } = world;
  putPod(store, 'a', 'arm-1');
  const end = store.fault(`PATCH ${podPath}`, { status: 422, message: 'a policy says no' });
  await world.settled();
  for (let seconds = 0; seconds < 3600; seconds += 10) {
    await world.reconcilePods();
    t.strictSame(world.taints('arm-1'), [], 'it blocks the taint between retries too');
    await clock.advance(10_000);
  }
  const count = store.received(`PATCH ${podPath}`).length;
  t.ok(count >= 8 && count <= 12, `${count} requests in an hour`);
  t.equal(world.events.length, 2, 'an event every half hour');
  t.equal(await world.series('archwright_taint_blockers{reason="pods"}'), 1);
  end();
  await clock.advance(10 * 60_000);
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), [taintOf('arm64')]);
});

t.test('a refused pod gets an event even if nodes have their taint already', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  putNode(store, 'arm-1', 'arm64', { taints: [taintOf('arm64')] });
  putPod(store, 'a', 'arm-1');
  store.fault(`PATCH ${podPath}`, { status: 403, message: 'a policy says no' });
  await world.reconcilePods();
  await world.reconcilePods();
  like(t, world.events, [
    {
      reason: 'TolerationRefused',
      about: { kind: 'Pod', name: 'a' },
      message: /have their taint .*a policy says no/,
    },
  ]);
  t.equal(world.events.length, 1);
  t.equal(await world.series('archwright_taint_blockers{reason="pods"}'), 0, 'it blocks no taint');
  t.equal(await world.series('archwright_taint_pods_waiting'), 1);
});

t.test('many refused pods do not delay others, and are retried a few at a time', async (t) => {
  const clock = createFakeClock();
  const world = await startWorld(t, { clock });
  const { store } = world;
  for (let n = 0; n < 40; n += 1) putPod(store, `bad-${n}`, 'arm-1');
  for (let n = 0; n < 10; n += 1) putPod(store, `good-${n}`, 'arm-1');
  store.fault(/^PATCH .*bad-/, { status: 422 });
  await world.settled();
  for (let round = 0; round < 60; round += 1) {
    const before = store.writes().length;
    await world.reconcilePods();
    await world.settled();
    t.ok(store.writes().length - before <= 34, 'a bounded number per reconcile');
    await clock.advance(10_000);
  }
  for (let n = 0; n < 10; n += 1) t.equal(world.tolerations(`good-${n}`).length, 2);
  t.ok(store.writes().length < 400, `${store.writes().length} requests in ten minutes`);
});

for (const status of [429, 500, 503]) {
  t.test(`while patches fail with ${status}, no node is tainted`, async (t) => {
    const world = await onePod(t);
    const end = world.store.fault(/^PATCH /, { status });
    await t.rejects(world.reconcilePods(), KubeError);
    t.strictSame(world.taints('arm-1'), []);
    end();
    await world.reconcilePods();
    t.strictSame(world.taints('arm-1'), [taintOf('arm64')]);
  });
}

t.test('a patch succeeds, but its response is lost', async (t) => {
  const world = await onePod(t);
  world.store.fault(/^PATCH /, { times: 2, lost: true });
  await t.rejects(world.reconcilePods(), KubeError);
  await t.rejects(world.reconcilePods(), KubeError);
  await world.reconcilePods();
  t.equal(world.tolerations('a').length, 2);
  t.strictSame(world.taints('arm-1'), [taintOf('arm64')]);
});

t.test('a node that changed meanwhile keeps the taint of the other writer', async (t) => {
  const world = await onePod(t);
  const theirs = { key: 'theirs', effect: 'NoExecute', timeAdded: '2026-11-21T10:00:00Z' };
  world.store.fault(`PATCH ${nodePath}`, {
    times: 3,
    before: () => putNode(world.store, 'arm-1', 'arm64', { taints: [theirs], annotations: { other: 'x' } }),
  });
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), [theirs, taintOf('arm64')], 'with its unknown fields');
  t.equal(world.record('arm-1'), key);
});

t.test('a node that changed its architecture, or was deleted, meanwhile', async (t) => {
  const world = await onePod(t);
  const { store } = world;
  store.fault(`GET ${nodePath}`, { times: 1, before: () => putNode(store, 'arm-1', 'amd64') });
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), []);
  putNode(store, 'arm-1', 'arm64');
  await world.settled();
  store.fault(`GET ${nodePath}`, { times: 1, before: () => store.remove(nodePath) });
  await world.reconcilePods();
  t.equal(store.get(nodePath), undefined);
});

t.test('a node that cannot be patched does not prevent the taints of others', async (t) => {
  const world = await startWorld(t);
  for (let n = 0; n < 12; n += 1) putNode(world.store, `arm-${n}`, 'arm64');
  world.store.fault('PATCH /api/v1/nodes/arm-3', { status: 403 });
  await world.settled();
  await t.rejects(world.reconcilePods(), { code: 'forbidden' });
  for (let n = 0; n < 12; n += 1) t.equal(world.taints(`arm-${n}`).length, n === 3 ? 0 : 1);
});

/** Whether a node has the taint although a pod on it does not tolerate it. */
function wrong(store: KubeStore): boolean {
  const namesArm64 = (object: StoredObject): boolean => JSON.stringify(object['spec']).includes('"arm64"');
  return store.list('/api/v1/nodes').some(namesArm64) && !store.list('/api/v1/pods').every(namesArm64);
}

t.test('a leader killed between any two steps leaves no taint that a pod does not tolerate', async (t) => {
  const names = ['a', 'b', 'c'];
  const nodes = ['arm-0', 'arm-1'];
  for (let end = 1; ; end += 1) {
    let left = end;
    const first = await startWorld(t, {
      step: () => {
        left -= 1;
        if (left === 0) throw new Error('killed');
      },
    });
    for (const name of names) putPod(first.store, name, nodes[names.indexOf(name) % 2] ?? '');
    for (const node of nodes) putNode(first.store, node, 'arm64');
    const killed = await first.reconcilePods().then(
      () => false,
      () => true,
    );
    first.depose();
    t.notOk(wrong(first.store), `killed at step ${end}`);
    const second = await startWorld(t, { over: first.store });
    await second.reconcileNodes();
    t.notOk(wrong(first.store));
    await second.reconcilePods();
    for (const node of nodes) t.strictSame(second.taints(node), [taintOf('arm64')]);
    for (const name of names) t.equal(second.tolerations(name).length, 2);
    if (!killed) break;
  }
});
