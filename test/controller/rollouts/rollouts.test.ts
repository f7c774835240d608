/** The feature over an API server with a store: status, steps, rollback, moves, and a leader that takes over. */
import t from 'tap';
import { facts, notIn, onArch, requiring, termOf } from '../../support/placement-input.ts';
import { followRollouts } from '../../../src/controller/rollouts/rollouts.ts';
import { rolloutPath, startWorld, digest, podPath, type World } from './world.ts';

const onArm = { node: 'arm-1', side: 'Target' } as const;
const healthy = facts('amd64 arm64', { image: 'app', digest });

/** These many pods, `amd-…` and `arm-…`. */
function pods(world: World, amd: number, arm: number, more: object = {}): void {
  for (let index = 0; index < amd; index += 1) world.pod(`amd-${index}`, { side: 'Other', age: 60 });
  for (let index = 0; index < arm; index += 1) world.pod(`arm-${index}`, { ...onArm, ...more });
}

t.test('the first look says what new pods do', async (t) => {
  const world = await startWorld(t);
  pods(world, 10, 0);
  t.match(await world.reconcile(), {
    phase: 'Progressing',
    newPods: 'Choose',
    step: 0,
    share: '10%',
    attempt: 1,
    pods: 10,
    moved: 0,
    message: 'moves 10% of the pods to arm64; pods are chosen when they are created',
    workloads: [{ name: 'Deployment/web', pods: 10, moved: 0, ready: 0, wanted: 1 }],
    conditions: [
      { type: 'Available', status: 'True' },
      { type: 'Progressing', status: 'True', reason: 'Progressing' },
      { type: 'Degraded', status: 'False' },
    ],
  });
  const writes = world.store.requests.length;
  await world.reconcile();
  t.equal(world.store.requests.length, writes, 'the same status is not written again');
});

t.test('steps, until it is complete', async (t) => {
  const world = await startWorld(t, { steps: ['50%', '100%'] });
  pods(world, 5, 0);
  await world.reconcile();
  pods(world, 5, 5);
  t.match(await world.reconcile(), { message: /^50% are there; at .* 100% follow$/, reachedAt: /^2026/ });
  await world.clock.advance(60_000);
  t.match(await world.reconcile(), { phase: 'Progressing', step: 1, share: '100%' });
  for (let index = 0; index < 5; index += 1) world.store.remove(podPath(`amd-${index}`));
  await world.reconcile();
  await world.clock.advance(60_000);
  t.match(await world.reconcile(), { phase: 'Complete', newPods: 'Target', pods: 5, moved: 5 });
  t.same(
    world.events.map(({ reason }) => reason),
    ['RolloutProgressing', 'RolloutComplete'],
  );
  t.same(world.evicted(), []);
});

t.test('three crashing pods: back at once, and the pods with it', async (t) => {
  const world = await startWorld(t, { steps: ['50%'] });
  pods(world, 10, 0);
  await world.reconcile();
  pods(world, 10, 5);
  for (const name of ['arm-0', 'arm-1']) world.pod(name, { ...onArm, ready: false, restarts: 2 });
  t.equal((await world.reconcile()).phase, 'Progressing', 'two are not enough');
  world.pod('arm-2', { ...onArm, ready: false, restarts: 2 });
  t.match(await world.reconcile(), {
    phase: 'RolledBack',
    newPods: 'Other',
    share: '0%',
    message: /3 of 5 pods on arm64 are unhealthy/,
    conditions: [{}, {}, { type: 'Degraded', status: 'True', reason: 'RolledBack' }],
  });
  t.same(world.evicted().toSorted(), ['arm-0', 'arm-1', 'arm-2'], 'those that are not ready');
  t.match(world.events.at(-1), { type: 'Warning', reason: 'RolloutRolledBack' });
  t.equal(await world.series('archwright_rollout_rollbacks_total{reason="Unhealthy"}'), 1);
  await world.reconcile();
  await world.reconcile();
  t.equal(world.evicted().length, 5, 'then the ready ones');
  t.equal(world.status().attempt, 1);
});

t.test('an exec format error: back at the first pod', async (t) => {
  const world = await startWorld(t);
  pods(world, 10, 0);
  await world.reconcile();
  pods(world, 10, 9);
  const exit = { code: 255, message: 'exec /app: exec format error' };
  world.pod('bad', { ...onArm, ready: false, exit });
  t.match(await world.reconcile(), { phase: 'RolledBack', message: /Deployment\/web: pod bad/ });
  t.ok(world.evicted().includes('bad'));
});

t.test('an image that exec-format/ noted: back at the first pod', async (t) => {
  let app = healthy;
  const world = await startWorld(t, {}, { factsOfPod: () => new Map([['app', app]]) });
  pods(world, 10, 0);
  await world.reconcile();
  pods(world, 10, 5);
  world.pod('bad', { ...onArm, ready: false, restarts: 1, exit: { code: 1 } });
  t.equal((await world.reconcile()).phase, 'Progressing');
  app = { ...healthy, brokenOn: ['arm64'] };
  t.match(await world.reconcile(), { phase: 'RolledBack', message: /app cannot run there/ });
});

t.test('lookups of images that take long run side by side', async (t) => {
  let asked = 0;
  const all = Promise.withResolvers<undefined>();
  const factsOfPod = async () => {
    asked += 1;
    if (asked === 8) all.resolve(undefined);
    await all.promise;
    return new Map();
  };
  const world = await startWorld(t, {}, { factsOfPod });
  for (let index = 0; index < 8; index += 1) world.pod(`p-${index}`, { replicaSet: `web${index}-1` });
  t.equal((await world.reconcile()).workloads.length, 8);
});

t.test('restarts from before the attempt do not count', async (t) => {
  const world = await startWorld(t, { steps: ['50%'] });
  for (let index = 0; index < 5; index += 1) world.pod(`old-${index}`, { restarts: 20, age: 3600 });
  await world.reconcile();
  await world.reconcile();
  for (let index = 0; index < 3; index += 1) world.pod(`arm-${index}`, { ...onArm, restarts: 2 });
  t.equal((await world.reconcile()).phase, 'RolledBack', 'the others did not restart since');
});

t.test('the others restart as often', async (t) => {
  const world = await startWorld(t, { steps: ['50%'] });
  for (let index = 0; index < 3; index += 1) world.pod(`old-${index}`, { restarts: 20, age: 3600 });
  await world.reconcile();
  await world.reconcile();
  for (let index = 0; index < 3; index += 1) {
    world.pod(`old-${index}`, { restarts: 22, age: 3600 });
    world.pod(`arm-${index}`, { ...onArm, restarts: 2 });
  }
  t.equal((await world.reconcile()).phase, 'Progressing');
});

t.test('a budget keeps a pod for now', async (t) => {
  const world = await startWorld(t);
  pods(world, 10, 0);
  await world.reconcile();
  pods(world, 10, 1);
  world.change({ aborted: true });
  world.store.evictions(podPath('arm-0'), { status: 429, message: 'the budget' });
  t.equal((await world.reconcile()).phase, 'Aborted');
  t.equal(await world.series('archwright_rollout_evictions_total{outcome="held"}'), 1);
  await world.reconcile();
  t.equal(await world.series('archwright_rollout_evictions_total{outcome="evicted"}'), 1);
});

t.test('pods that were on the architecture before are not moved back', async (t) => {
  const world = await startWorld(t, { aborted: true });
  world.pod('native', { node: 'arm-1' });
  world.pod('waits', { node: '', side: 'Target' });
  await world.store.until(() => world.leading.caches.waitingPods.size === 1, 'the waiting pod');
  await world.reconcile();
  t.same(world.evicted(), ['waits'], 'one that waits for a node is');
});

t.test('what cannot be moved is said, and does not hold up the rest', async (t) => {
  const world = await startWorld(t, { steps: ['50%'], pause: '0s' });
  const named = 'its pods constrain the architecture themselves';
  world.pod('a', { replicaSet: 'a-1', image: 'amd' });
  world.pod('b', { replicaSet: 'b-1', spec: onArch('amd64') });
  world.pod('b2', { replicaSet: 'b2-1', widened: true });
  world.pod('c', { replicaSet: 'c-1', spec: requiring(termOf(notIn('kubernetes.io/arch', 'arm64'))) });
  world.pod('d', { replicaSet: 'd-1', image: 'new' });
  t.match(await world.reconcile(), {
    phase: 'Waiting',
    message: 'none of its workloads can be moved',
    workloads: [
      { name: 'Deployment/a', wanted: 0, blocked: 'amd: no arm64' },
      { name: 'Deployment/b', wanted: 0, blocked: named },
      { name: 'Deployment/b2', wanted: 0, blocked: named },
      { name: 'Deployment/c', wanted: 0, blocked: 'its own node affinity excludes arm64' },
      { name: 'Deployment/d', wanted: 0, blocked: 'new is not known yet' },
    ],
  });
  world.pod('e-0', { replicaSet: 'e-1', side: 'Other' });
  world.pod('e-1', { replicaSet: 'e-1', side: 'Target', node: 'arm-1' });
  t.equal((await world.reconcile()).phase, 'Complete', 'as far as possible');
  t.notOk(world.status().workloads.at(-1)?.blocked, 'what the webhook added is no own constraint');
});

t.test('under constraints: widen, pods that name another architecture can be moved', async (t) => {
  const world = await startWorld(t, { steps: ['50%'] });
  world.configure({ constraints: 'widen', preferenceMode: 'hard' });
  world.pod('a', { replicaSet: 'a-1', spec: onArch('amd64') });
  world.pod('b', { replicaSet: 'b-1', widened: true });
  world.pod('c', { replicaSet: 'c-1', spec: onArch('amd64'), image: 'amd' });
  world.pod('d', { replicaSet: 'd-1', spec: onArch('arm64'), node: 'arm-1' });
  world.pod('e', { replicaSet: 'e-1', labels: { 'arch.example/preferred': 'amd64' } });
  const own = 'its pods constrain the architecture themselves';
  t.match(await world.reconcile(), {
    phase: 'Progressing',
    workloads: [
      { name: 'Deployment/a', wanted: 1 },
      { name: 'Deployment/b', wanted: 1 },
      { name: 'Deployment/c', blocked: own },
      { name: 'Deployment/d', blocked: own },
      { name: 'Deployment/e', blocked: 'a label or annotation pins its pods' },
    ],
  });
  await world.clock.advance(1000);
  world.pod('a2', { replicaSet: 'a-1', spec: onArch('amd64') });
  world.pod('b2', { replicaSet: 'b-1', widened: true });
  t.match(
    (await world.reconcile()).workloads,
    [{ blocked: own }, { wanted: 1 }],
    'a new pod was not widened: something prevents it, and must not hold up the rest',
  );
  await world.clock.advance(1000);
  world.pod('b3', { replicaSet: 'b-1', widened: true, spec: onArch('amd64') });
  t.match((await world.reconcile()).workloads, [{}, { blocked: own }], 'another webhook named it again');
});

t.test('pods whose volumes cannot be used there do not hold up the rest', async (t) => {
  const world = await startWorld(t, { steps: ['100%'], pause: '0s', rebalance: true });
  world.zones({ a: 'a', b: 'b', c: 'b' }, 'a');
  const db = { kind: 'StatefulSet', replicaSet: 'db' };
  world.pod('db-0', { ...db, claims: ['b'] });
  world.pod('db-1', { ...db, claims: ['a'] });
  world.pod('log-0', { kind: 'StatefulSet', replicaSet: 'log', claims: ['c'] });
  t.match(await world.reconcile(), {
    phase: 'Progressing',
    workloads: [
      { name: 'StatefulSet/db', pods: 2, wanted: 1 },
      { name: 'StatefulSet/log', wanted: 0, blocked: 'its volumes cannot be used on arm64' },
    ],
  });
  t.same(world.evicted(), ['db-1']);
  const reads = (): number => world.store.requests.filter(({ path }) => path.includes('volume')).length;
  const before = reads();
  await world.reconcile();
  t.equal(reads(), before, 'volumes are not read each time');
  world.pod('db-1', { ...db, claims: ['a'], ...onArm });
  t.equal((await world.reconcile()).phase, 'Complete');
});

t.test('without nodes of the architecture, unless they can come', async (t) => {
  const world = await startWorld(t, { architecture: 's390x' });
  pods(world, 3, 0);
  const { newPods, phase, message } = await world.reconcile();
  t.match({ phase, message }, { phase: 'Waiting', message: /^no node has s390x/ });
  t.equal(newPods, undefined);
  world.change({ architecture: 'arm46' });
  t.match((await world.reconcile()).message, /^no node has arm46, .*; did you mean arm64\?$/);
  world.change({ architecture: 's390x' });
  world.configure({ schedulableArchitectures: ['amd64', 's390x'] });
  t.match(await world.reconcile(), { phase: 'Waiting', workloads: [{ blocked: 'app: no s390x' }] });
});

t.test('rebalance moves running pods, within the disruption limit', async (t) => {
  const world = await startWorld(t, { steps: ['50%'], rebalance: true });
  world.configure({ evictionsPerMinute: 6000 });
  pods(world, 8, 0);
  await world.reconcile();
  t.same(world.evicted().length, 1, 'one at a time by evictionsPerMinute');
  world.pod('arm-0', { ...onArm, ready: false });
  world.pod('arm-1', { ...onArm, ready: false });
  await world.clock.advance(1000);
  await world.reconcile();
  t.same(world.evicted().length, 1, 'a quarter of the pods is not ready');
  world.pod('arm-0', onArm);
  world.pod('arm-1', onArm);
  world.pod('arm-2', onArm);
  await world.clock.advance(1000);
  await world.reconcile();
  t.same(world.evicted().length, 2);
  for (let index = 3; index < 9; index += 1) world.pod(`arm-${index}`, onArm);
  await world.clock.advance(1000);
  await world.reconcile();
  t.match(world.evicted().at(-1), /^arm-/, 'back, if there are too many');
});

t.test(
  'a namespace that asks for evictions first, again and again, gets no more than its share',
  async (t) => {
    const world = await startWorld(t, { steps: ['100%'], rebalance: true });
    const { store } = world;
    world.configure({ evictionsPerMinute: 12 });
    const inBusy = (path: string): string => path.replace('/shop/', '/busy/');
    store.put(inBusy(rolloutPath), { spec: store.get(rolloutPath)?.['spec'] });
    for (let index = 0; index < 9; index += 1) {
      world.pod(`a-${index}`, { replicaSet: `a${index}-1` });
      store.put(inBusy(podPath(`b-${index}`)), store.get(podPath(`a-${index}`)) ?? {});
    }
    await world.reconcile();
    const evictedOf = (letter: string): number =>
      world.evicted().filter((name) => name.startsWith(letter)).length;
    const look = async (): Promise<void> => {
      await world.clock.advance(5000);
      for (const key of ['busy/web', 'shop/web']) await world.reconcile(key);
    };
    for (let count = 0; count < 5; count += 1) await look();
    t.strictSame([evictedOf('a'), evictedOf('b')], [3, 3]);
    store.remove(rolloutPath);
    await store.until(() => world.leading.caches.rollouts.size === 1, 'the cache of rollouts');
    await world.clock.advance(60_000);
    for (let count = 0; count < 3; count += 1) await look();
    t.equal(evictedOf('b'), 6, 'all of them while no other namespace wants any');
  },
);

t.test('another leader goes on from the status', async (t) => {
  const first = await startWorld(t, { steps: ['50%', '100%'] });
  pods(first, 5, 0);
  await first.reconcile();
  pods(first, 5, 5);
  await first.reconcile();
  first.depose();
  const next = await startWorld(t, {}, { over: first });
  await next.clock.advance(60_000);
  t.match(await next.reconcile(), { step: 1, attempt: 1 });
});

t.test('a leader that dies after the status of a rollback: the next one reports it, once', async (t) => {
  let statuses = 0;
  const step = (name: string): void => {
    // The first status is the beginning.
    if (name === 'rollouts/status-written' && (statuses += 1) === 2) throw new Error('died');
  };
  const first = await startWorld(t, { steps: ['50%'] }, { step });
  pods(first, 5, 0);
  await first.reconcile();
  pods(first, 5, 5, { ready: false, restarts: 3 });
  await t.rejects(first.reconcile(), { message: 'died' });
  t.equal(first.status().phase, 'RolledBack');
  t.same(first.events, []);
  first.depose();
  const next = await startWorld(t, {}, { over: first });
  await next.reconcile();
  await next.reconcile();
  t.same(
    next.events.map(({ reason }) => reason),
    ['RolloutRolledBack'],
  );
  t.equal(await next.series('archwright_rollout_rollbacks_total{reason="Unhealthy"}'), 1);
  await next.clock.advance(10 * 60_000);
  const later = await startWorld(t, {}, { over: next });
  await later.reconcile();
  t.same(later.events, [], 'it is long known');
});

t.test('a pod with more or longer claims than real ones is not asked for', async (t) => {
  const world = await startWorld(t, { steps: ['50%'] });
  world.pod('many', {
    kind: 'StatefulSet',
    replicaSet: 'many',
    claims: Array.from({ length: 129 }, (_, at) => `c${at}`),
  });
  world.pod('long', { kind: 'StatefulSet', replicaSet: 'long', claims: ['x'.repeat(254)] });
  const blocked = 'its volumes cannot be used on arm64';
  t.match(await world.reconcile(), {
    workloads: [
      { name: 'StatefulSet/long', blocked },
      { name: 'StatefulSet/many', blocked },
    ],
  });
  t.same(
    world.store.requests.filter(({ path }) => path.includes('persistentvolumeclaims')),
    [],
  );
});

t.test('of two rollouts for a pod the older one counts', async (t) => {
  const world = await startWorld(t);
  pods(world, 4, 0);
  const younger = rolloutPath.replace(/web$/, 'younger');
  const creationTimestamp = new Date(world.clock.now() + 60_000).toISOString();
  world.store.put(younger, { metadata: { creationTimestamp }, spec: { architecture: 'arm64' } });
  await world.reconcile();
  await world.store.until(() => world.leading.caches.rollouts.size === 2, 'both rollouts');
  await world.reconcile('shop/younger');
  t.match(world.store.get(younger)?.['status'], { phase: 'Waiting', pods: 0 });
});

t.test('an object that is not valid, and one that is gone', async (t) => {
  const world = await startWorld(t, { steps: ['0%'] });
  pods(world, 1, 0);
  t.match(await world.reconcile(), {
    message: /^it is left out: spec\.steps\[0\] must be/,
    conditions: [{ type: 'Available', status: 'False', reason: 'Invalid' }],
  });
  world.store.remove(rolloutPath);
  await world.store.until(() => world.leading.caches.rollouts.size === 0, 'the cache');
  await world.reconcile();
  t.same(world.evicted(), [], 'pods stay as they are');
});

t.test(
  'a namespace with thousands of rollouts does not keep the leader busy: the oldest are followed',
  async (t) => {
    const world = await startWorld(t);
    pods(world, 4, 0);
    const { spec, metadata } = world.store.get(rolloutPath) ?? {};
    const second = '2026-01-02T00:00:00Z';
    world.store.put(rolloutPath, { metadata: { ...metadata, creationTimestamp: second }, spec });
    const older = Array.from({ length: 100 }, (_, index) => rolloutPath.replace(/web$/, `old-${index}`));
    const first = { metadata: { creationTimestamp: '2026-01-01T00:00:00Z' } };
    for (const path of older)
      world.store.put(path, { ...first, spec: { architecture: 'arm64', names: ['other'] } });
    await world.store.until(() => world.leading.caches.rollouts.size === 101, 'the cache of rollouts');
    const { newPods, message } = await world.reconcile();
    t.strictSame([newPods, message], [undefined, 'it is left out: the namespace has 100 older rollouts']);
    world.store.remove(older[0] ?? '');
    await world.store.until(() => world.leading.caches.rollouts.size === 100, 'the cache of rollouts');
    t.match(await world.reconcile(), { newPods: 'Choose', pods: 4 });
  },
);

t.test('an event of a pod does not go through the rollouts and pods of all namespaces', async (t) => {
  const world = await startWorld(t);
  const { rollouts, runningPods, waitingPods } = world.leading.caches;
  pods(world, 4, 0);
  await world.settled();
  const running = followRollouts(world.leading);
  t.teardown(async () => {
    world.depose();
    await running;
  });
  await world.store.until(() => world.status()?.pods === 4, 'the first look');
  const scans = [
    t.capture(rollouts, 'values', rollouts.values.bind(rollouts)),
    t.capture(runningPods, 'values', runningPods.values.bind(runningPods)),
    t.capture(waitingPods, 'values', waitingPods.values.bind(waitingPods)),
  ];
  pods(world, 5, 0);
  await world.settled();
  await world.clock.advance(5000);
  await world.store.until(() => world.status()?.pods === 5, 'the look after an event');
  for (const each of scans) for (const { args } of each()) t.same(args, ['shop']);
});
