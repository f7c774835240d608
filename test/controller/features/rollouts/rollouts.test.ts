/** The feature over an API server with a store: status, steps, rollback, evictions, a new leader. */
import { leadThroughout } from '../../leader.ts';
import t from 'tap';
import type { FactsOfPod } from '../../../../src/cluster/facts-of-pod.ts';
import { facts, notIn, onArch, requiring, termOf, together } from '../../../support/placement-input.ts';
import {
  RolloutReconciler,
  rollouts as rolloutsFeature,
} from '../../../../src/controller/features/rollouts/rollouts.ts';
import type { Caches } from '../../../../src/controller/state/caches.ts';
import { PodCounts } from '../../../../src/controller/features/rollouts/pods.ts';
import { evictions, rolloutPath, startWorld, digest, podPath, type PodOptions, type World } from './world.ts';
import { like } from '../../../support/like.ts';

const onArm = { node: 'arm-1', side: 'Target' } as const;
const onlyNew = 'without rebalance, only new pods move';
const waits = `0 of 1 pods moved; ${onlyNew}`;
const healthy = facts('amd64 arm64', { image: 'app', digest });

/** Adds pods `amd-…` and `arm-…`. */
function pods(world: World, amd: number, arm: number, more: object = {}): void {
  for (let index = 0; index < amd; index += 1) world.pod(`amd-${index}`, { side: 'Other', age: 60 });
  for (let index = 0; index < arm; index += 1) world.pod(`arm-${index}`, { ...onArm, ...more });
}

t.test('names without pods: misspelled, in an older rollout, or not selected', async (t) => {
  const names = ['web', 'wbe', 'old', 'other'];
  const world = await startWorld(t, { names, selector: { matchLabels: { app: 'web' } } });
  const labels = { app: 'web' };
  const { clock, store } = world;
  const created = (ms: number) => ({ creationTimestamp: new Date(clock.now() + ms).toISOString() });
  const own = store.get(rolloutPath);
  store.put(rolloutPath, { ...own, metadata: { generation: 1, ...created(0) } });
  store.put(rolloutPath.replace('web', 'first'), {
    metadata: created(-60_000),
    spec: { architecture: 'arm64', names: ['old'] },
    status: { newPods: 'Choose' },
  });
  world.pod('old', { labels, replicaSet: 'old-1' });
  world.pod('other', { labels: { app: 'other' }, replicaSet: 'other-1' });
  const missing = [
    { name: 'wbe', pods: 0, blocked: 'no workload of this name has pods' },
    { name: 'old', pods: 0, blocked: 'its pods are in the older rollout first' },
    { name: 'other', pods: 0, blocked: 'the selector matches none of its pods' },
  ];
  like(t, await world.reconcile(), {
    phase: 'Waiting',
    message:
      'it has no pods so far; web: no workload of this name has pods; wbe: no workload of this name has pods; old: its pods are in the older rollout first; other: the selector matches none of its pods',
    workloads: [{ name: 'web' }, ...missing],
  });
  world.pod('web', { labels });
  const workloads = [{ name: 'Deployment/web', pods: 1 }, ...missing];
  like(t, await world.reconcile(), { phase: 'Progressing', pods: 1, workloads });
  world.change({ names: undefined, selector: undefined });
  store.remove(podPath('web'));
  store.remove(podPath('other'));
  const message = 'it has no pods so far; the pods that it selects are in older rollouts: first';
  like(t, await world.reconcile(), { message, workloads: [] });
});

t.test('the rollout goes through its steps until it is complete', async (t) => {
  const world = await startWorld(t, { steps: ['50%', '100%'] });
  pods(world, 5, 0);
  like(t, await world.reconcile(), {
    phase: 'Progressing',
    newPods: 'Choose',
    step: 0,
    share: '50%',
    attempt: 1,
    pods: 5,
    moved: 0,
    message: /^moving 50% of the pods to arm64; waiting: Deployment\/web: .* only new pods move$/,
    workloads: [
      {
        name: 'Deployment/web',
        pods: 5,
        moved: 0,
        ready: 0,
        wanted: 3,
        blocked: `0 of 3 pods moved; ${onlyNew}`,
      },
    ],
    conditions: [
      { type: 'Available', status: 'True' },
      { type: 'Progressing', status: 'True', reason: 'Held' },
      { type: 'Degraded', status: 'False' },
    ],
  });
  const writes = world.store.requests.length;
  await world.reconcile();
  t.equal(world.store.requests.length, writes, 'the same status is not written again');
  t.equal(world.requeueAfterMs(), 5000);
  pods(world, 5, 5);
  like(t, await world.reconcile(), {
    message: /^50% of the pods moved; next step \(100%\) at 2026.*$/,
    reachedAt: /^2026/,
  });
  await world.clock.advance(60_000);
  like(t, await world.reconcile(), { phase: 'Progressing', step: 1, share: '100%' });
  for (let index = 0; index < 5; index += 1) world.store.remove(podPath(`amd-${index}`));
  await world.reconcile();
  await world.clock.advance(60_000);
  like(t, await world.reconcile(), { phase: 'Complete', newPods: 'Target', pods: 5, moved: 5 });
  t.equal(world.requeueAfterMs(), 60_000, 'its pods cause events');
  like(t, world.events, [{ reason: 'RolloutProgressing' }, { reason: 'RolloutComplete' }]);
  t.strictSame(world.evicted(), []);
});

/** A reconciler with caches that are late. */
function reconcilerWith(world: World, late: Partial<Caches>): RolloutReconciler {
  const leader = { ...world.leader, caches: { ...world.leader.caches, ...late } };
  return new RolloutReconciler(leader, new PodCounts(leader));
}

/** Reconciles as often as the default of `evictionsPerMinute` allows an eviction. */
async function looks(world: World, count: number): Promise<void> {
  for (let look = 0; look < count; look += 1) {
    await world.clock.advance(2000);
    await world.reconcile();
  }
}

t.test('three crashing pods: it rolls back at once, and evicts them', async (t) => {
  const world = await startWorld(t, { steps: ['50%'] });
  const { caches } = world.leader;
  pods(world, 10, 0);
  await world.reconcile();
  pods(world, 10, 5);
  for (const name of ['arm-0', 'arm-1']) world.pod(name, { ...onArm, ready: false, restarts: 2 });
  t.equal((await world.reconcile()).phase, 'Progressing', 'two are not enough');
  const late = caches.rollouts.get('shop', 'web');
  world.pod('arm-2', { ...onArm, ready: false, restarts: 2 });
  like(t, await world.reconcile(), {
    phase: 'RolledBack',
    newPods: 'Other',
    share: '0%',
    attempt: 1,
    message: /3 of 5 pods on arm64 are unhealthy/,
    conditions: [{}, {}, { type: 'Degraded', status: 'True', reason: 'RolledBack' }],
  });
  t.equal(world.evicted().length, 1, '`evictionsPerMinute` limits a rollback too');
  await looks(world, 2);
  t.strictSame(world.evicted().toSorted(), ['arm-0', 'arm-1', 'arm-2'], 'unready pods first');
  like(t, world.events.at(-1), { type: 'Warning', reason: 'RolloutRolledBack' });
  t.equal(await world.series('archwright_rollout_rollbacks_total{reason="Unhealthy"}'), 1);
  await looks(world, 2);
  t.equal(world.evicted().length, 5, 'then the ready pods');
  pods(world, 10, 0);
  await world.settled();
  const rollouts = { ...caches.rollouts, get: () => late, values: () => (late ? [late] : []) };
  const reconciler = reconcilerWith(world, { rollouts });
  await t.rejects(reconciler.reconcile('shop/web'), { code: 'conflict' }, 'a late cache does not undo it');
  t.equal(world.status().phase, 'RolledBack');
});

t.test('rollback: a ready pod that a budget holds does not keep the others there', async (t) => {
  const world = await startWorld(t, { aborted: true });
  pods(world, 2, 2);
  world.store.fault(/^POST .*\/arm-0\/eviction$/, { status: 429, message: 'the budget' });
  await looks(world, 2);
  t.strictSame(world.evicted(), ['arm-0', 'arm-1']);
});

t.test('readiness is checked again before a step; status and one event say what holds it', async (t) => {
  const world = await startWorld(t, { steps: ['50%', '100%'] });
  pods(world, 4, 0);
  await world.reconcile();
  pods(world, 4, 4);
  like(t, await world.reconcile(), { message: /^50% of the pods moved/ });
  await world.clock.advance(50_000);
  for (const name of ['arm-0', 'arm-1']) world.pod(name, { ...onArm, ready: false });
  await world.clock.advance(10_000);
  const blocked = '2 of 4 moved pods are ready, but this step needs 3: arm-0 is not ready';
  const message = `moving 50% of the pods to arm64; waiting: Deployment/web: ${blocked}`;
  like(t, await world.reconcile(), {
    phase: 'Progressing',
    step: 0,
    message,
    workloads: [{ blocked }],
    conditions: [{}, { type: 'Progressing', reason: 'Held', message }, {}],
  });
  const held = () => world.events.filter(({ reason }) => reason === 'RolloutHeld');
  t.strictSame(held(), [], 'not before a minute');
  await world.clock.advance(60_000);
  await world.reconcile();
  like(t, held(), [{ message }]);
  pods(world, 4, 4);
  like(t, await world.reconcile(), { step: 1 });
});

t.test('the status says why running pods are not moved', async (t) => {
  const world = await startWorld(t, { steps: ['50%'], rebalance: true });
  const { store } = world;
  const why = async (): Promise<string | undefined> => {
    await world.reconcile();
    return (await world.reconcile()).workloads[0]?.blocked;
  };
  pods(world, 4, 0);
  store.fault(evictions, { status: 429, message: 'the budget\u001b web needs 4 pods', times: 1 });
  t.match(await why(), /^0 of 2 pods moved; .*the budget\? web needs 4 pods/);
  await world.clock.advance(60_000);
  t.equal(await why(), '0 of 2 pods moved; they are being evicted at the rate of evictionsPerMinute');
  world.pod('amd-0', { side: 'Other', ready: false });
  t.match(await why(), /misplacedPodsShare allows no eviction: 1 of its pods are not ready/);
  for (const name of ['arm-0', 'arm-1']) world.pod(name, onArm);
  store.fault(evictions, { status: 429, message: 'the budget web needs 4 pods' });
  world.change({ aborted: true });
  t.match(await why(), /^2 pods are to be moved back; .*1 of its pods are not ready/);
});

for (const [architecture, note] of [
  ['arm64', { brokenOn: ['arm64'] }],
  ['amd64', { requiredLevel: 3 }],
] as const)
  t.test(`an image noted as broken on ${architecture}: it rolls back at the first pod`, async (t) => {
    let app = healthy;
    const factsOfPod: FactsOfPod = () => Promise.resolve(new Map([['app', app]]));
    const world = await startWorld(t, { architecture }, { factsOfPod });
    const [there, elsewhere] = architecture === 'arm64' ? ['arm-1', 'amd-1'] : ['amd-1', 'arm-1'];
    for (let index = 0; index < 10; index += 1)
      world.pod(`old-${index}`, { node: elsewhere, side: 'Other', age: 60 });
    await world.reconcile();
    for (let index = 0; index < 5; index += 1) world.pod(`new-${index}`, { node: there, side: 'Target' });
    world.pod('bad', { node: there, side: 'Target', ready: false, restarts: 1, exit: { code: 1 } });
    t.equal((await world.reconcile()).phase, 'Progressing');
    app = { ...healthy, ...note };
    like(t, await world.reconcile(), { phase: 'RolledBack', message: /app cannot run there/ });
  });

t.test('the images of all workloads are looked up at once, for a second at most', async (t) => {
  const budgets: number[] = [];
  const end = Promise.withResolvers<void>();
  const factsOfPod: FactsOfPod = async ({ budgetMs }) => {
    if (budgets.push(budgetMs) === 40) end.resolve();
    await end.promise;
    return new Map();
  };
  const world = await startWorld(t, {}, { factsOfPod });
  for (let index = 0; index < 40; index += 1) world.pod(`p-${index}`, { replicaSet: `web${index}-1` });
  await world.reconcile();
  t.ok(budgets.every((ms) => ms === 1000));
});

for (const [others, restarts, phase] of [
  ['restarted only before the attempt', 20, 'RolledBack'],
  ['restart as often', 22, 'Progressing'],
] as const) {
  t.test(`two restarts of each new pod, while the others ${others}: ${phase}`, async (t) => {
    const world = await startWorld(t, { steps: ['50%'] });
    const indexes = [0, 1, 2];
    for (const index of indexes) world.pod(`old-${index}`, { restarts: 20, age: 3600 });
    await world.reconcile();
    await world.reconcile();
    for (const index of indexes) {
      world.pod(`old-${index}`, { restarts, age: 3600 });
      world.pod(`arm-${index}`, { ...onArm, restarts: 2 });
    }
    t.equal((await world.reconcile()).phase, phase);
  });
}

const named = 'its pods constrain the architecture themselves';
const notArm = requiring(termOf(notIn('kubernetes.io/arch', 'arm64')));
const blockedPods: Readonly<Record<string, readonly [blocked: string, pod: PodOptions]>> = {
  a: ['amd: no arm64', { image: 'amd' }],
  b: [named, { spec: onArch('amd64') }],
  b2: [named, { widened: true }],
  c: ['its own node affinity excludes arm64', { spec: notArm }],
  d: ['new is not known yet', { image: 'new' }],
  d2: ['its pods must run on one architecture, by their pod affinity', { spec: together }],
  d3: ['archwright skips its pods', { labels: { 'arch.example/placement': 'disabled' } }],
};

t.test('workloads that cannot be moved are reported, and do not block the rest', async (t) => {
  const world = await startWorld(t, { steps: ['50%'], pause: '0s' });
  const all = Object.entries(blockedPods);
  for (const [name, [, pod]] of all) world.pod(name, { replicaSet: `${name}-1`, ...pod });
  like(t, await world.reconcile(), {
    phase: 'Waiting',
    message: 'none of its workloads can be moved: Deployment/a: amd: no arm64; and 6 more',
    workloads: all.map(([name, [blocked]]) => ({ name: `Deployment/${name}`, wanted: 0, blocked })),
  });
  world.pod('e-0', { replicaSet: 'e-1', side: 'Other' });
  world.pod('e-1', { replicaSet: 'e-1', side: 'Target', node: 'arm-1' });
  like(t, await world.reconcile(), {
    phase: 'Complete',
    message: '50% of the pods that can move are on arm64; blocked: Deployment/a: amd: no arm64; and 6 more',
  });
  const { blocked } = world.status().workloads.at(-1) ?? {};
  t.notOk(blocked, "the webhook's additions are not the pod's own constraint");
});

t.test('under `constraints: widen`, pods that name another architecture can be moved', async (t) => {
  const world = await startWorld(t, { steps: ['50%'] });
  world.configure({ constraints: 'widen', preferenceMode: 'hard' });
  const pod = (name: string, more: PodOptions): void =>
    world.pod(name, { replicaSet: `${name[0]}-1`, ...more });
  pod('a', { spec: onArch('amd64') });
  pod('b', { widened: true });
  pod('c', { spec: onArch('amd64'), image: 'amd' });
  pod('d', { spec: onArch('arm64'), node: 'arm-1' });
  pod('e', { labels: { 'arch.example/preferred': 'amd64' } });
  const blocked = async () => (await world.reconcile()).workloads.map((each) => each.blocked);
  const pinned = 'a label or annotation pins its pods';
  t.strictSame(await blocked(), [waits, waits, named, named, pinned]);
  await world.clock.advance(1000);
  pod('a2', { spec: onArch('amd64') });
  pod('b2', { widened: true });
  const [a, b] = await blocked();
  t.strictSame([a, b], [named, waits], 'a new pod that was not widened does not block the rest');
  await world.clock.advance(1000);
  pod('b3', { widened: true, spec: onArch('amd64') });
  t.equal((await blocked())[1], named, 'another webhook added the architecture again');
});

t.test('pods with volumes that cannot be used there do not block the rest', async (t) => {
  const world = await startWorld(t, { steps: ['100%'], pause: '0s', rebalance: true });
  world.zones({ a: 'a', b: 'b', c: 'b' }, 'a');
  const db = { kind: 'StatefulSet', replicaSet: 'db' };
  world.pod('db-0', { ...db, claims: ['b'] });
  world.pod('db-1', { ...db, claims: ['a'] });
  world.pod('log-0', { kind: 'StatefulSet', replicaSet: 'log', claims: ['c'] });
  like(t, await world.reconcile(), {
    phase: 'Progressing',
    workloads: [
      { name: 'StatefulSet/db', pods: 2, wanted: 1 },
      { name: 'StatefulSet/log', wanted: 0, blocked: 'its volumes cannot be used on arm64' },
    ],
  });
  t.strictSame(world.evicted(), ['db-1']);
  const reads = (): number => world.store.requests.filter(({ path }) => path.includes('volume')).length;
  const before = reads();
  await world.reconcile();
  t.equal(reads(), before, 'volumes are not read again');
  world.pod('db-1', { ...db, claims: ['a'], ...onArm });
  const some = '1 of 2 pods can be moved: the volumes of the others cannot be used there';
  like(t, await world.reconcile(), {
    phase: 'Complete',
    message: `100% of the pods that can move are on arm64; blocked: StatefulSet/db: ${some}; and 1 more`,
  });
  world.store.remove(podPath('db-0'));
  world.store.remove(podPath('log-0'));
  like(t, await world.reconcile(), { phase: 'Complete', message: '100% of the pods are on arm64' });
});

t.test('it waits for a node of the architecture, unless an autoscaler can add one', async (t) => {
  const world = await startWorld(t, { architecture: 's390x' });
  pods(world, 3, 0);
  const noNode = { phase: 'Waiting', message: /^no node has s390x/, newPods: undefined };
  like(t, await world.reconcile(), noNode);
  world.change({ architecture: 'arm46' });
  t.match((await world.reconcile()).message, /^no node has arm46, .*; did you mean arm64\?$/);
  world.change({ architecture: 's390x' });
  world.configure({ schedulableArchitectures: ['amd64', 's390x'] });
  like(t, await world.reconcile(), { phase: 'Waiting', workloads: [{ blocked: 'app: no s390x' }] });
});

t.test('rebalance moves running pods there, and back beyond the share', async (t) => {
  const world = await startWorld(t, { steps: ['50%'], rebalance: true });
  pods(world, 8, 0);
  await world.reconcile();
  t.strictSame(world.evicted(), ['amd-0'], 'one per reconcile, by evictionsPerMinute');
  for (let index = 0; index < 9; index += 1) world.pod(`arm-${index}`, onArm);
  await looks(world, 1);
  t.match(world.evicted().at(-1), /^arm-/);
});

t.test('rebalance: refused evictions do not use up those of other pods and workloads', async (t) => {
  const world = await startWorld(t, { steps: ['100%'], rebalance: true });
  world.configure({ evictionsPerMinute: 12, misplacedPodsShare: 50 });
  for (const name of ['a-0', 'a-1', 'b-0', 'b-1']) world.pod(name, { replicaSet: `${name[0]}-1` });
  world.pod('0', { ...onArm, replicaSet: '0-1' });
  world.store.fault(/^POST .*\/pods\/(?:a-\d|b-0)\/eviction$/, { status: 429, message: 'the budget' });
  for (let count = 0; count < 4; count += 1) {
    await world.reconcile();
    await world.clock.advance(5000);
  }
  t.strictSame(world.evicted(), ['a-0', 'b-0', 'a-1', 'b-1']);
});

t.test('rebalance: a workload whose pods come back is moved twice in an hour', async (t) => {
  const world = await startWorld(t, { steps: ['100%'], rebalance: true });
  const comeBack = async (count: number): Promise<void> => {
    for (let index = 0; index < count; index += 1) {
      world.pod(`amd-${world.evicted().length}`, { side: 'Other' });
      await looks(world, 1);
    }
  };
  await comeBack(4);
  t.strictSame(world.evicted(), ['amd-0', 'amd-1']);
  t.match((await world.reconcile()).workloads[0]?.blocked, /moved too often in the last hour/);
  await world.clock.advance(60 * 60_000);
  await comeBack(1);
  t.equal(world.evicted().length, 3);
});

t.test('rebalance: after a refusal by a budget, the other pods of the workload wait too', async (t) => {
  const world = await startWorld(t, { steps: ['100%'], rebalance: true });
  world.configure({ evictionsPerMinute: 6000, misplacedPodsShare: 100 });
  pods(world, 3, 0);
  world.store.fault(evictions, { status: 429, message: 'the budget' });
  await looks(world, 1);
  t.equal(world.evicted().length, 1);
  t.equal(world.requeueAfterMs(), 5000, 'until the next look');
});

t.test('rebalance: from a late cache, no more pods are evicted', async (t) => {
  const world = await startWorld(t, { steps: ['100%'], rebalance: true });
  world.configure({ evictionsPerMinute: 6000 });
  for (const name of ['a-0', 'a-1', 'a-2', 'a-3']) world.pod(name, { replicaSet: 'a-1' });
  await world.settled();
  const { runningPods } = world.leader.caches;
  const late = [...runningPods.values()];
  const reconciler = reconcilerWith(world, { runningPods: { ...runningPods, values: () => late } });
  for (let count = 0; count < 3; count += 1) {
    await reconciler.reconcile('shop/web');
    await world.settled();
    await world.clock.advance(5000);
  }
  t.strictSame(world.evicted(), ['a-0']);
});

t.test('switched off, rollouts stay where they are; switched on again, they go on', async (t) => {
  const { configure, reconcile, pod, series } = await startWorld(t);
  pod('a');
  t.equal((await reconcile()).phase, 'Progressing');
  const phase = 'archwright_rollouts{phase="Progressing"}';
  t.equal(await series(phase), 1);
  configure({ rollouts: false });
  pod('b', { node: 'arm-1', side: 'Target' });
  t.equal((await reconcile()).pods, 1);
  t.equal(await series(phase), 0);
  configure({ rollouts: true });
  t.equal((await reconcile()).pods, 2);
});

t.test('an invalid rollout is ignored', async (t) => {
  const world = await startWorld(t, { steps: ['0%'] });
  pods(world, 1, 0);
  like(t, await world.reconcile(), {
    message: /^Rollout ignored: spec\.steps\.0 must be/,
    conditions: [{ type: 'Available', status: 'False', reason: 'Invalid' }],
  });
});

t.test('a hundred rollouts of a namespace share one count of its pods', async (t) => {
  const { store, clock, leader, ...world } = await startWorld(t);
  store.remove(rolloutPath);
  for (let index = 0; index < 100; index += 1) {
    const spec = { architecture: 'arm64', names: [`web${index}`] };
    store.put(rolloutPath.replace(/web$/, `web${index}`), { metadata: { generation: 1 }, spec });
    world.pod(`p${index}`, { replicaSet: `web${index}-1` });
  }
  const { rollouts, runningPods } = leader.caches;
  await store.until(() => rollouts.size === 100 && runningPods.size === 100, 'the caches');
  const counts = new PodCounts(leader);
  const scans = t.capture(runningPods, 'values', runningPods.values.bind(runningPods));
  const podsOf = (): number[] =>
    [...rollouts.values()].map((each) => {
      return counts.count('shop', each).ofRollout.get(each.metadata?.name ?? '')?.length ?? 0;
    });
  t.ok(podsOf().every((count) => count === 1));
  t.equal(scans().length, 1);
  world.pod('p100', { replicaSet: 'web7-1' });
  await store.until(() => runningPods.size === 101, 'the new pod');
  await clock.advance(200);
  t.ok(podsOf().includes(2), 'they are counted again later');
});

t.test('pods do not concern rollouts that are left out', async (t) => {
  const world = await startWorld(t);
  const { store, clock } = world;
  store.remove(rolloutPath);
  const spec = { architecture: 'arm64', names: ['other'] };
  const invalid = { ...spec, steps: ['0%'] };
  for (let index = 0; index < 120; index += 1) {
    const name = `r${String(index).padStart(3, '0')}`;
    store.put(rolloutPath.replace(/web$/, name), { spec: index < 10 ? invalid : spec });
  }
  await store.until(() => world.leader.caches.rollouts.size === 120, 'the cache of rollouts');
  leadThroughout(t, rolloutsFeature, world);
  const reconciles = async (): Promise<number> =>
    (await world.series('archwright_controller_reconciles_total{feature="rollouts",result="success"}')) ?? 0;
  await store.until(async () => (await reconciles()) >= 240, 'a reconcile of each, and one for its status');
  const before = await reconciles();
  world.pod('p');
  await world.settled();
  await clock.advance(1000);
  await store.until(async () => (await reconciles()) >= before + 90);
  t.equal(await reconciles(), before + 90, 'neither the invalid ones nor the youngest ones');
  const statusOf = (name: string) => store.get(rolloutPath.replace(/web$/, name))?.['status'];
  const leftOut = { message: 'Rollout ignored: the namespace has 100 older rollouts', newPods: undefined };
  like(t, statusOf('r100'), leftOut);
  store.remove(rolloutPath.replace(/web$/, 'r000'));
  await store.until(() => world.leader.caches.rollouts.size === 119, 'the cache of rollouts');
  await clock.advance(60_000);
  await store.until(() => JSON.stringify(statusOf('r100')).includes('Choose'), 'the next one is followed');
});
