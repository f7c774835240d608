/** What an API server, other writers and the end of a leader do to the work on taints. */
import t from 'tap';
import { KubeError } from '../../../src/kube/api/errors.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import type { KubeStore, StoredObject } from '../../support/kube-store.ts';
import { key, putNode, putPod, startWorld, taintOf, tolerationOf, type World } from './setup.ts';

const podPath = '/api/v1/namespaces/shop/pods/a';
const nodePath = '/api/v1/nodes/arm-1';

async function onePod(t: Parameters<typeof startWorld>[0]): Promise<World> {
  const world = await startWorld(t);
  putPod(world.store, 'a', 'arm-1');
  await world.settled();
  return world;
}

void t.test('a pod that changed meanwhile is patched as it is now', async (t) => {
  const world = await onePod(t);
  world.store.fault(`PATCH ${podPath}`, {
    times: 1,
    before: () => putPod(world.store, 'a', 'arm-1', { tolerations: [{ key: 'theirs', operator: 'Exists' }] }),
  });
  await world.reconcilePods();
  t.same(world.tolerations('a'), [{ key: 'theirs', operator: 'Exists' }, tolerationOf('arm64')]);
  t.same(world.taints('arm-1'), [taintOf('arm64')]);
});

void t.test('a pod that got the toleration meanwhile is left', async (t) => {
  const world = await onePod(t);
  const { store } = world;
  store.fault(`PATCH ${podPath}`, {
    times: 1,
    before: () => putPod(store, 'a', 'arm-1', { tolerations: [{ operator: 'Exists' }] }),
  });
  await world.reconcilePods();
  t.same(world.tolerations('a'), [{ operator: 'Exists' }]);
  t.equal(store.asked(`PATCH ${podPath}`).length, 1);
});

void t.test('another pod of the same name is none of ours', async (t) => {
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
  t.same(world.tolerations('a'), []);
});

void t.test('a pod that went away', async (t) => {
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
    t.same(world.taints('arm-1'), [taintOf('arm64')], when);
  }
});

void t.test('a pod that the API server refuses to change holds the taint back', async (t) => {
  const world = await onePod(t);
  putPod(world.store, 'b', 'arm-1');
  const end = world.store.fault(`PATCH ${podPath}`, { status: 403, message: 'a policy says no' });
  await world.reconcilePods();
  t.same(world.taints('arm-1'), []);
  t.equal(world.tolerations('b').length, 2, 'the others get theirs');
  t.match(world.events, [
    { reason: 'TaintHeldBack', about: { kind: 'Pod', name: 'a' }, message: /a policy says no/ },
  ]);
  t.equal(await world.series('archwright_taint_blockers{reason="pods"}'), 1);
  end();
  await world.reconcilePods();
  t.same(world.taints('arm-1'), [taintOf('arm64')]);
});

void t.test('a refusal of everything ends soon', async (t) => {
  const world = await startWorld(t);
  for (let n = 0; n < 60; n += 1) putPod(world.store, `p${n}`, 'arm-1');
  world.store.fault(/^PATCH .*\/pods\//, { status: 403 });
  await world.reconcilePods();
  t.ok(world.store.writes().length <= 24, `${world.store.writes().length} requests`);
  t.same(world.taints('arm-1'), []);
});

void t.test('a pod that is refused again and again is tried less and less; its event stays', async (t) => {
  const clock = createFakeClock();
  const world = await startWorld(t, { clock });
  const { store } = world;
  putPod(store, 'a', 'arm-1');
  const end = store.fault(`PATCH ${podPath}`, { status: 422, message: 'a policy says no' });
  await world.settled();
  for (let seconds = 0; seconds < 3600; seconds += 10) {
    await world.reconcilePods();
    t.same(world.taints('arm-1'), [], 'it holds the taint back while it rests too');
    await clock.advance(10_000);
  }
  const asked = store.asked(`PATCH ${podPath}`).length;
  t.ok(asked >= 8 && asked <= 12, `${asked} requests in an hour`);
  t.equal(world.events.length, 2, 'told every half hour');
  t.equal(await world.series('archwright_taint_blockers{reason="pods"}'), 1);
  end();
  await clock.advance(10 * 60_000);
  await world.reconcilePods();
  t.same(world.taints('arm-1'), [taintOf('arm64')]);
});

void t.test('a refused pod gets an event if nodes have their taint', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  putNode(store, 'arm-1', 'arm64', { taints: [taintOf('arm64')] });
  putPod(store, 'a', 'arm-1');
  store.fault(`PATCH ${podPath}`, { status: 403, message: 'a policy says no' });
  await world.reconcilePods();
  await world.reconcilePods();
  t.match(world.events, [
    {
      reason: 'TolerationRefused',
      about: { kind: 'Pod', name: 'a' },
      message: /have their taint .*a policy says no/,
    },
  ]);
  t.equal(world.events.length, 1);
  t.equal(await world.series('archwright_taint_blockers{reason="pods"}'), 0, 'it holds nothing back');
  t.equal(await world.series('archwright_taint_pods_waiting'), 1);
});

void t.test('many refused pods neither block the others nor are requested all at once', async (t) => {
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
    t.ok(store.writes().length - before <= 34, 'a bounded number a round');
    await clock.advance(10_000);
  }
  for (let n = 0; n < 10; n += 1) t.equal(world.tolerations(`good-${n}`).length, 2);
  t.ok(store.writes().length < 400, `${store.writes().length} requests in ten minutes`);
});

for (const status of [409, 429, 500, 503]) {
  void t.test(`${status} without end: nothing is tainted, the round fails`, async (t) => {
    const world = await onePod(t);
    const end = world.store.fault(/^PATCH /, { status });
    await t.rejects(world.reconcilePods(), KubeError);
    t.same(world.taints('arm-1'), []);
    end();
    await world.reconcilePods();
    t.same(world.taints('arm-1'), [taintOf('arm64')]);
  });
}

void t.test('a patch that was carried out, and the answer lost', async (t) => {
  const world = await onePod(t);
  world.store.fault(/^PATCH /, { times: 2, lost: true });
  await t.rejects(world.reconcilePods(), KubeError);
  await t.rejects(world.reconcilePods(), KubeError);
  await world.reconcilePods();
  t.equal(world.tolerations('a').length, 2);
  t.same(world.taints('arm-1'), [taintOf('arm64')]);
});

void t.test('a node that changed meanwhile keeps what others wrote', async (t) => {
  const world = await onePod(t);
  const theirs = { key: 'theirs', effect: 'NoExecute', timeAdded: '2026-11-21T10:00:00Z' };
  world.store.fault(`PATCH ${nodePath}`, {
    times: 3,
    before: () => putNode(world.store, 'arm-1', 'arm64', { taints: [theirs], annotations: { other: 'x' } }),
  });
  await world.reconcilePods();
  t.same(world.taints('arm-1'), [theirs, taintOf('arm64')], 'whole, with what we do not know');
  t.equal(world.record('arm-1'), key);
});

void t.test('a node that changed its architecture, or went, meanwhile', async (t) => {
  const world = await onePod(t);
  const { store } = world;
  store.fault(`GET ${nodePath}`, { times: 1, before: () => putNode(store, 'arm-1', 'amd64') });
  await world.reconcilePods();
  t.same(world.taints('arm-1'), []);
  putNode(store, 'arm-1', 'arm64');
  await world.settled();
  store.fault(`GET ${nodePath}`, { times: 1, before: () => store.remove(nodePath) });
  await world.reconcilePods();
  t.equal(store.get(nodePath), undefined);
});

void t.test('one node that cannot be changed keeps no other from its taint', async (t) => {
  const world = await startWorld(t);
  for (let n = 0; n < 12; n += 1) putNode(world.store, `arm-${n}`, 'arm64');
  world.store.fault('PATCH /api/v1/nodes/arm-3', { status: 403 });
  await world.settled();
  await t.rejects(world.reconcilePods(), { code: 'forbidden' });
  for (let n = 0; n < 12; n += 1) t.equal(world.taints(`arm-${n}`).length, n === 3 ? 0 : 1);
});

/** Whether a node has the taint while a pod does not tolerate it. */
function wrong(store: KubeStore): boolean {
  const says = (object: StoredObject): boolean => JSON.stringify(object['spec']).includes('"arm64"');
  return store.list('/api/v1/nodes').some(says) && !store.list('/api/v1/pods').every(says);
}

void t.test('a leader that ends between any two steps', async (t) => {
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
    for (const node of nodes) t.same(second.taints(node), [taintOf('arm64')]);
    for (const name of names) t.equal(second.tolerations(name).length, 2);
    if (!killed) break;
  }
});
