/**
 * The leader chooses the architecture of each new pod, so that the share is met. A scale-down keeps the share:
 * deletion costs order the pods so that each prefix has it.
 */
import t from 'tap';
import type { Pod } from '../../../../src/kube/api/objects.ts';
import { controllerRef } from '../../objects.ts';
import { podsToOrder } from '../../../../src/controller/features/rollouts/order.ts';
import type { RolledPod, RolledWorkload } from '../../../../src/controller/features/rollouts/pods.ts';
import { RolloutShares } from '../../../../src/controller/features/rollouts/shares.ts';
import { wantedPods } from '../../../../src/policy/resources/rollout.ts';
import { runningPod } from '../../leader.ts';
import { podPath, startWorld, type World } from './world.ts';
import { like } from '../../../support/like.ts';

const policy = { name: 'web', architecture: 'arm64', newPods: 'Choose' } as const;

function newPod(name: string, replicaSet = 'web-1', spec: object = {}, kind = 'ReplicaSet'): Pod {
  const ownerReferences = [controllerRef(kind, replicaSet)];
  return {
    metadata: { name, namespace: 'shop', uid: `uid-${name}`, ownerReferences },
    spec: { containers: [], ...spec },
  };
}

/** The choices for new pods: `t` for the architecture, `o` for others. */
async function choose({ shares }: World, count: number, replicaSet = 'web-1', from = 0): Promise<string> {
  let sides = '';
  for (let index = from; index < from + count; index += 1) {
    const side = await shares.choose(newPod(`${replicaSet}-new-${index}`, replicaSet), policy);
    sides += side === 'Target' ? 't' : 'o';
  }
  return sides;
}

t.test('a burst of pods meets the share, pod by pod', async (t) => {
  for (const [step, sides] of [
    ['10%', 'otoooooooooooot'],
    ['50%', 'totototototototo'],
    ['100%', 'tttttt'],
    [2, 'ttooooo'],
  ] as const) {
    const world = await startWorld(t, { steps: [step] });
    await world.reconcile();
    t.equal(await choose(world, sides.length), sides, String(step));
  }
});

t.test('a burst goes through the pods once', async (t) => {
  const world = await startWorld(t, { steps: ['50%'] });
  for (let index = 0; index < 100; index += 1) world.pod(`old-${index}`);
  await world.reconcile();
  let reads = 0;
  const shared = world.leader.caches.runningPods;
  const counting = {
    onEach: () => undefined,
    *values(namespace: string) {
      for (const pod of shared.values(namespace)) {
        const { uid = '', ...owner } = pod.owner ?? {};
        yield { ...pod, owner: Object.defineProperty(owner, 'uid', { get: () => ((reads += 1), uid) }) };
      }
    },
  };
  const caches = { ...world.leader.caches, runningPods: counting };
  const shares = new RolloutShares({ ...world.leader, caches } as never);
  await choose({ ...world, shares }, 20);
  t.ok(reads <= 300, `${reads} reads`);
});

t.test('running pods and pods that wait for the scheduler count', async (t) => {
  const world = await startWorld(t, { steps: ['50%'] });
  for (let index = 0; index < 6; index += 1) world.pod(`old-${index}`);
  world.pod('arm', { node: 'arm-1' });
  world.pod('waits', { node: '', side: 'Target' });
  await world.reconcile();
  await world.store.until(() => world.leader.caches.waitingPods.size === 1, 'the waiting pod');
  t.equal(await choose(world, 6), 'ttttto', 'up to seven of fourteen');
});

t.test('the pods of an old ReplicaSet do not count for the new one', async (t) => {
  const world = await startWorld(t, { steps: ['50%'] });
  for (let index = 0; index < 10; index += 1) world.pod(`old-${index}`);
  await world.reconcile();
  t.equal(await choose(world, 10, 'web-2'), 'tototototo');
});

t.test('a pod is chosen once, and counts once', async (t) => {
  const world = await startWorld(t, { steps: ['50%'] });
  await world.reconcile();
  t.equal(await choose(world, 3), 'tot');
  t.equal(await choose(world, 3), 'tot', 'the same choice for the same pods');
  world.pod('web-1-new-0', { node: 'arm-1', side: 'Target' });
  world.pod('web-1-new-1', { side: 'Other' });
  await world.settled();
  await world.clock.advance(1000);
  t.equal(await choose(world, 3, 'web-1', 3), 'oto');
  // The pods chosen last never appeared.
  await world.clock.advance(60_000);
  t.equal(await choose(world, 2, 'web-1', 10), 'to', 'one pod of each exists');
});

t.test('a chosen pod that was deleted does not count', async (t) => {
  const world = await startWorld(t, { steps: ['50%'] });
  await world.reconcile();
  t.equal(await choose(world, 6), 'tototo');
  const name = (index: number): string => `web-1-new-${index}`;
  for (const index of [0, 2]) world.pod(name(index), { node: 'arm-1', side: 'Target' });
  for (const index of [1, 3]) world.pod(name(index), { side: 'Other' });
  world.pod(name(4), { node: '', spec: { schedulingGates: [{ name: 'arch.example/scheduling-gate' }] } });
  const { waitingPods, runningPods } = world.leader.caches;
  await world.settled();
  await world.store.until(() => waitingPods.size === 1, 'the waiting pod');
  for (const index of [0, 2, 4]) world.store.remove(podPath(name(index)));
  await world.store.until(() => waitingPods.size === 0 && runningPods.size === 2, 'the others');
  await world.clock.advance(2000);
  // Three other pods count: two exist, one was only chosen.
  t.equal(await choose(world, 5, 'web-1', 10), 'tttto');
});

t.test('a pod of a deleted rollout, or without an owner, goes to the other architectures', async (t) => {
  const world = await startWorld(t);
  await world.reconcile();
  t.equal(await world.shares.choose(newPod('a'), { ...policy, name: 'gone' }), 'Other');
  const { ownerReferences: _, ...metadata } = newPod('b').metadata ?? {};
  t.equal(await world.shares.choose({ ...newPod('b'), metadata }, policy), 'Other');
});

t.test('a pod whose volume is in a zone without the architecture is not moved', async (t) => {
  const world = await startWorld(t, { steps: ['100%'] });
  await world.reconcile();
  world.zones({ a: 'a', b: 'b', any: undefined }, 'a');
  const { nodes } = world.leader.caches;
  await world.store.until(() => nodes.get('', 'arm-1')?.labels['zone'] === 'a', 'the zone of the node');
  world.store.put('/api/v1/namespaces/shop/persistentvolumeclaims/unbound', { spec: {} });
  const side = async (claimName: string): Promise<string> => {
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName } }];
    return await world.shares.choose(newPod(`db-${claimName}`, 'db', { volumes }, 'StatefulSet'), policy);
  };
  t.equal(await side('a'), 'Target');
  t.equal(await side('b'), 'Other');
  t.equal(await side('any'), 'Target');
  t.equal(await side('unbound'), 'Target');
  t.equal(await side('missing'), 'Target');
  const claims = Array.from({ length: 129 }, (_, at) => ({ persistentVolumeClaim: { claimName: `c${at}` } }));
  const { length: reads } = world.store.requests;
  t.equal(await world.shares.choose(newPod('many', 'db', { volumes: claims }), policy), 'Other');
  t.equal(await side('x'.repeat(254)), 'Other');
  t.equal(world.store.requests.length, reads, 'claims beyond the limits of number and length are not read');
  world.store.fault(/persistentvolumeclaims/, { status: 403 });
  t.equal(await side('forbidden'), 'Other');
});

const cost = 'controller.kubernetes.io/pod-deletion-cost';
const order = 'arch.example/rollout-order';

function pod(name: string, isTarget: boolean, annotations?: Readonly<Record<string, string>>): RolledPod {
  return {
    namespace: 'shop',
    name,
    uid: name,
    owner: { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: 'r' },
    createdAt: 0,
    scheduledAt: 0,
    ready: true,
    readySince: 0,
    restarts: 0,
    isTarget,
    isMoved: isTarget,
    running: runningPod({ annotations }),
  };
}

const workload = (pods: readonly RolledPod[]): RolledWorkload => ({
  namespace: 'shop',
  name: 'Deployment/web',
  pods,
  going: 0,
});

function podsOf(targets: number, others: number): readonly RolledPod[] {
  return Array.from({ length: targets + others }, (_, index) => {
    const isTarget = index < targets;
    return pod(`${isTarget ? 't' : 'o'}-${String(index).padStart(4, '0')}`, isTarget);
  });
}

for (const [step, targets, others] of [
  [{ percent: 25 }, 10, 30],
  [{ percent: 50 }, 40, 40],
  [{ percent: 10 }, 9, 90],
  [{ pods: 3 }, 3, 20],
] as const)
  t.test(`${JSON.stringify(step)}: ${targets} and ${others}`, (t) => {
    const found = podsToOrder(workload(podsOf(targets, others)), step);
    t.equal(found.length, targets + others, 'all are new');
    const kept = found.toSorted((a, b) => b.cost - a.cost);
    for (let count = 1; count <= kept.length; count += 1) {
      const left = kept.slice(0, count).filter((each) => each.pod.isTarget).length;
      const off = Math.abs(left - wantedPods(step, count));
      if (off > 1) t.fail(`${left} of ${count} pods`);
    }
    t.end();
  });

t.test('surplus pods are deleted first', (t) => {
  const found = podsToOrder(workload(podsOf(5, 20)), { percent: 50 }).toSorted((a, b) => b.cost - a.cost);
  t.equal(found.slice(0, 10).filter((each) => each.pod.isTarget).length, 5);
  const all = podsToOrder(workload(podsOf(2, 3)), { percent: 100 }).toSorted((a, b) => b.cost - a.cost);
  t.equal(all.map(({ pod: { name } }) => name[0]).join(''), 'ttooo');
  t.end();
});

t.test('an unchanged cost is not written again; a cost set by a person stays', (t) => {
  const has = (value: string) => ({ [cost]: value, [order]: value });
  const placed = [pod('a', true, has('-1')), pod('b', false, has('-2'))];
  const names = (pods: readonly RolledPod[]) =>
    podsToOrder(workload(pods), { percent: 50 }).map((each) => each.pod.name);
  t.strictSame(names(placed), []);
  t.strictSame(names([...placed, pod('c', false)]), ['c'], 'only the new pod');
  t.strictSame(names([...placed, pod('c', false, { [cost]: '7' })]), []);
  t.strictSame(
    names([pod('a', true, { [cost]: '7', [order]: '-1' }), pod('b', false)]),
    [],
    'a person changed it',
  );
  const { running: _, ...waiting } = pod('w', true);
  t.strictSame(names([waiting]), [], 'without a node');
  t.end();
});

t.test('the leader writes the costs', async (t) => {
  const world = await startWorld(t, { steps: ['50%'] });
  world.pod('a', { side: 'Other' });
  world.pod('b', { side: 'Target', node: 'arm-1' });
  await world.reconcile();
  like(t, world.store.get(podPath('b'))?.metadata.annotations, { [cost]: '-1', [order]: '-1' });
  like(t, world.store.get(podPath('a'))?.metadata.annotations, { [cost]: '-2', [order]: '-2' });
  const writes = world.store.requests.filter(({ method }) => method === 'PATCH').length;
  await world.reconcile();
  t.equal(world.store.requests.filter(({ method }) => method === 'PATCH').length, writes);
});
