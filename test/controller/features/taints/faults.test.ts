/** Taints despite errors of the API server, other writers, and a leader that ends. */
import t from 'tap';
import { createFakeClock } from '../../../support/fake-clock.ts';
import { annotation, key, putNode, putPod, startWorld, taintOf, tolerationOf, type World } from './setup.ts';
import { like } from '../../../support/like.ts';
import { leadThroughout } from '../../leader.ts';
import { taints } from '../../../../src/controller/features/taints/taints.ts';

const podPath = '/api/v1/namespaces/shop/pods/a';

async function onePod(t: Parameters<typeof startWorld>[0]): Promise<World> {
  const world = await startWorld(t);
  putPod(world.store, 'a', 'arm-1');
  await world.settled();
  return world;
}

t.test('a pod that changed meanwhile is patched in its new form', async (t) => {
  const theirs = { key: 'theirs', operator: 'Exists' };
  for (const tolerations of [[theirs], [theirs, tolerationOf('arm64')]]) {
    const world = await onePod(t);
    const before = (): void => putPod(world.store, 'a', 'arm-1', { tolerations });
    world.store.fault(`PATCH ${podPath}`, { times: 1, before });
    await world.reconcilePods();
    t.strictSame(world.tolerations('a'), [theirs, tolerationOf('arm64')]);
    t.strictSame(world.taints('arm-1'), [taintOf('arm64')]);
  }
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

t.test('a pod that changes all the time blocks the taint, and delays no other pod', async (t) => {
  const world = await onePod(t);
  const { store } = world;
  putPod(store, 'b', 'arm-1');
  let change = 0;
  store.fault(`PATCH ${podPath}`, {
    before: () => putPod(store, 'a', 'arm-1', { labels: { change: String((change += 1)) } }),
  });
  await world.reconcilePods();
  t.equal(world.tolerations('b').length, 2);
  t.strictSame(world.taints('arm-1'), []);
  like(t, world.events, [{ reason: 'TaintHeldBack', about: { name: 'a' }, message: /has been modified/ }]);
});

t.test('a refused pod is retried with back-off, and its event is repeated', async (t) => {
  const clock = createFakeClock();
  const world = await startWorld(t, { clock });
  const { store } = world;
  for (const name of ['a', 'b']) putPod(store, name, 'arm-1');
  const end = store.fault(`PATCH ${podPath}`, { status: 422, message: 'a policy\u001b says no' });
  for (let seconds = 0; seconds < 3600; seconds += 10) {
    await world.reconcilePods();
    t.strictSame(world.taints('arm-1'), [], 'it blocks the taint between retries too');
    await clock.advance(10_000);
  }
  t.equal(world.tolerations('b').length, 2, 'other pods get their toleration');
  const count = store.received(`PATCH ${podPath}`).length;
  t.ok(count >= 8 && count <= 12, `${count} requests in an hour`);
  const event = {
    reason: 'TaintHeldBack',
    about: { kind: 'Pod', name: 'a' },
    message: /do not get.*a policy\? says no/,
  };
  like(t, world.events, [event, event], 'every half hour');
  t.equal(await world.series('archwright_taint_blockers{reason="pods"}'), 1);
  end();
  await clock.advance(10 * 60_000);
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), [taintOf('arm64')]);
});

t.test('a refused pod is not tried again while it is disabled', async (t) => {
  const world = await onePod(t);
  const end = world.store.fault(`PATCH ${podPath}`, { status: 403 });
  await world.reconcilePods();
  end();
  putPod(world.store, 'a', 'arm-1', { labels: { 'arch.example/placement': 'disabled' } });
  putNode(world.store, 'amd-1', 'amd64');
  await world.reconcilePods();
  t.equal(world.tolerations('a').length, 1);
  t.strictSame(world.taints('arm-1'), [taintOf('arm64')]);
  putPod(world.store, 'a', 'arm-1');
  await world.reconcilePods();
  t.equal(world.tolerations('a').length, 2);
});

t.test('each refused pod gets an event, even if nodes have their taint already', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  putNode(store, 'arm-1', 'arm64', { taints: [taintOf('arm64')] });
  for (const name of ['a', 'b']) putPod(store, name, 'arm-1');
  store.fault(/^PATCH .*\/pods\/[ab]$/, { status: 403, message: 'a policy says no' });
  await world.reconcilePods();
  await world.reconcilePods();
  const event = { reason: 'TolerationRefused', message: /have their taint .*a policy says no/ };
  like(
    t,
    world.events,
    ['a', 'b'].map((name) => ({ ...event, about: { kind: 'Pod', name } })),
  );
  t.equal(world.events.length, 2);
  t.equal(await world.series('archwright_taint_blockers{reason="pods"}'), 0, 'it blocks no taint');
  t.equal(await world.series('archwright_taint_pods_waiting'), 2);
});

t.test(
  'a new node is looked at without delay, but after a failure only at the end of the back-off',
  async (t) => {
    const clock = createFakeClock();
    const world = await startWorld(t, { clock });
    const { store } = world;
    leadThroughout(t, taints, world);
    await store.until(() => world.taints('arm-1').length > 0, 'the first taint');
    putNode(store, 'arm-2', 'arm64');
    await store.until(() => world.taints('arm-2').length > 0, 'the taint of the new node');
    const tries = () => store.received(/^PATCH .*arm-3/).length;
    const stop = store.fault(/^PATCH .*arm-3/, { status: 403 });
    putNode(store, 'arm-3', 'arm64');
    await store.until(() => world.lines.join('').includes('403'), 'the failure');
    const before = tries();
    for (let index = 4; index < 20; index += 1) {
      putNode(store, `arm-${index}`, 'arm64');
      await world.settled();
    }
    t.equal(tries(), before);
    stop();
    await clock.advance(250);
    await store.until(() => world.taints('arm-3').length > 0, 'the next try');
  },
);

t.test('a node that cannot be changed does not keep others from their taints', async (t) => {
  const configuration = { taintArchitectures: ['arm64', 's390x'] };
  const world = await startWorld(t, { configuration, nodes: { 'arm-1': 'arm64', 'z-1': 's390x' } });
  const { store } = world;
  putNode(store, 'amd-1', 'amd64', { taints: [taintOf('amd64')], annotations: { [annotation]: key } });
  for (const name of ['amd-1', 'arm-1']) store.fault(`PATCH /api/v1/nodes/${name}`, { status: 403 });
  await t.rejects(world.reconcileNodes(), { code: 'forbidden' });
  t.strictSame(world.taints('z-1'), [taintOf('s390x')]);
});
