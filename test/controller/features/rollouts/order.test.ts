/** A scale-down keeps the share: deletion costs order the pods so that each prefix has it. */
import t from 'tap';
import { podsToOrder } from '../../../../src/controller/features/rollouts/order.ts';
import type { RolledPod, RolledWorkload } from '../../../../src/controller/features/rollouts/pods.ts';
import { wantedPods } from '../../../../src/policy/resources/rollout.ts';
import { runningPod } from '../../leader.ts';
import { podPath, startWorld } from './world.ts';
import { like } from '../../../support/like.ts';

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
