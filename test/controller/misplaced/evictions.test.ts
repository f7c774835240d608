/** Evictions: how many at once, how fast, and once per cause, also after faults and under a new leader. */
import t, { type Test } from 'tap';
import { facts, isIn, requiring, termOf } from '../../support/placement-input.ts';
import type { StoreRequest } from '../../support/kube-store.ts';
import {
  disruptedPods,
  maxUnavailable,
  type DisruptionInput,
} from '../../../src/controller/misplaced/evictions.ts';
import type { RunningPod } from '../../../src/controller/caches/cached.ts';
import { runningPod } from '../leading.ts';
import {
  digest,
  evictions,
  notesPath,
  podPath,
  putPod,
  startDeleting,
  startWorld,
  webOwner,
  type World,
} from './setup.ts';

const replicaSets = '/apis/apps/v1/namespaces/shop/replicasets';
const quarter = { misplacedPodsShare: 25 };
const names = (count: number): string[] => Array.from({ length: count }, (_, n) => `web-${n}`);

/** This number of misplaced pods, with a disruption limit of a quarter. */
const withPods = (t: Test, count: number): Promise<World> =>
  startWorld(t, { pods: names(count), configuration: quarter });

t.test('evictions stay within the disruption limit, and continue when successors are ready', async (t) => {
  const world = await withPods(t, 8);
  await world.afterGrace();
  t.equal(world.pods().length, 6);
  await world.after(20_000);
  t.equal(world.pods().length, 6, 'two are missing');

  const gone = names(8).filter((name) => !world.pods().includes(name));
  for (const name of gone) putPod(world.store, `${name}-next`, { node: 'amd-1', createdAt: world.now() });
  await world.after(20_000);
  t.equal(world.pods().length, 8, 'two are not ready yet');
  putPod(world.store, `${gone[0]}-next`, { node: 'amd-1', createdAt: world.now(), ready: true });
  await world.after(20_000);
  t.equal(world.pods().length, 7, 'one more is evicted');
});

t.test('two ReplicaSets of a Deployment share its disruption limit', async (t) => {
  const world = await withPods(t, 4);
  const { store } = world;
  const older = { ...webOwner, name: 'web-0', uid: 'older-uid' };
  const set = store.get(`${replicaSets}/web-1`);
  const { ownerReferences } = set?.metadata ?? {};
  store.put(`${replicaSets}/web-0`, { ...set, metadata: { ownerReferences, uid: 'older-uid' } });
  for (const name of names(4)) putPod(store, `old-${name}`, { owner: older });
  await world.afterGrace();
  const started = world.pods().length;
  t.ok(started >= 6, 'two of eight');
  await world.after(16_000);
  t.equal(world.pods().length, 6, 'two of the Deployment, not two of each ReplicaSet');
});

t.test('a pod created in the second of the first eviction is a successor', async (t) => {
  const world = await startWorld(t, { pods: ['web-a'] });
  await world.afterGrace();
  const [since = ''] = Object.values(world.notes());
  putPod(world.store, 'web-b', { createdAt: Date.parse(since) });
  await world.afterGrace();
  t.same(world.pods(), ['web-b']);
  t.equal(world.events.at(-1)?.reason, 'MisplacedPodAgain');
});

t.test('terminating pods count towards the disruption limit', async (t) => {
  const world = await withPods(t, 8);
  startDeleting(world.store, 'web-7');
  await world.afterGrace();
  t.equal(world.pods().length, 7, 'one terminates anyway, so only one is evicted');
});

t.test('a successor that never becomes ready delays the others for a bounded time', async (t) => {
  const world = await withPods(t, 4);
  await world.afterGrace();
  t.equal(world.pods().length, 3);
  putPod(world.store, 'next', { node: 'amd-1', createdAt: world.now() });
  await world.after(9 * 60_000);
  t.equal(world.pods().length, 4);
  await world.after(2 * 60_000);
  t.equal(world.pods().length, 3);
});

t.test('a new leader counts the evictions of the previous one', async (t) => {
  const first = await withPods(t, 8);
  await first.afterGrace();
  t.equal(first.pods().length, 6);
  first.depose();
  const second = await startWorld(t, { over: first, configuration: quarter });
  await second.afterGrace();
  t.equal(second.pods().length, 6, 'two are missing, so none is evicted');
  await second.after(6 * 60_000);
  t.equal(second.pods().length, 4, 'missing pods no longer count after a while');
});

t.test('a workload is moved once per cause, also by the next leader', async (t) => {
  const first = await startWorld(t, { pods: ['web-a'] });
  const { store } = first;
  await first.afterGrace();
  t.same(first.pods(), []);
  putPod(store, 'web-b', { createdAt: first.now() });
  await first.afterGrace();
  t.same(first.pods(), ['web-b']);
  t.match(first.events.at(-1), { reason: 'MisplacedPodAgain', about: { kind: 'Deployment', name: 'web' } });
  t.equal(await first.series('archwright_misplaced_pods_total{outcome="again"}'), 1);
  const events = first.events.length;
  await first.after(3_600_000);
  t.equal(first.events.length, events, 'no further event');
  first.depose();

  const second = await startWorld(t, { over: first });
  await second.afterGrace();
  t.same(second.pods(), ['web-b']);
  second.depose();

  // Another image is another cause.
  const changed = { 'app:1': facts('amd64', { digest: digest('d') }) };
  const third = await startWorld(t, { over: second, facts: changed });
  putPod(store, 'web-c', { createdAt: third.now(), imageID: '' });
  await third.afterGrace();
  t.same(third.pods(), ['web-b'], 'web-b has pulled another digest');
  t.equal(store.received(evictions).length, 2);
});

t.test('after its note is removed, a workload is moved again', async (t) => {
  const first = await startWorld(t, { pods: ['web-a'] });
  await first.afterGrace();
  first.store.remove(notesPath);
  const second = await startWorld(t, { over: first });
  putPod(first.store, 'web-b', { createdAt: second.now() });
  await second.afterGrace();
  t.same(second.pods(), []);
});

t.test('malformed and outdated notes are ignored, and kept', async (t) => {
  const world = await startWorld(t);
  world.store.put(notesPath, { data: { x: 'y', ['0'.repeat(32)]: 'never', ['1'.repeat(32)]: '' } });
  putPod(world.store, 'web-a');
  await world.afterGrace();
  t.same(world.pods(), []);
  t.equal(Object.keys(world.notes()).length, 4, 'one note is added');
});

t.test('`evictionsPerMinute` spaces evictions', async (t) => {
  const world = await startWorld(t, { pods: names(25), configuration: { evictionsPerMinute: 30 } });
  t.equal(await world.afterGrace(), true, 'more evictions follow');
  t.equal(world.pods().length, 5, '20 per reconcile');
  t.equal(world.pauses.length, 19);
  t.ok(world.pauses.every((ms) => ms === 2000));
  await world.after(0);
  t.same(world.pods(), []);
});

t.test('rollouts and misplaced pods share `evictionsPerMinute`', async (t) => {
  const world = await startWorld(t, { pods: names(3), configuration: { evictionsPerMinute: 30 } });
  await world.after(0);
  await world.after(29_000);
  const start = world.now();
  t.equal(world.leading.evictionPace.tryTake('a namespace with rollouts'), 0);
  await world.after(1000);
  t.same(world.pods(), []);
  // Two owners: each gets half of the turns.
  t.same(world.pauses, [1000, 4000, 4000]);
  t.equal(world.now() - start, 10_000);
});

t.test('a rollout that takes each eviction at once leaves half of them to misplaced pods', async (t) => {
  const world = await startWorld(t, {
    pods: ['web-a'],
    configuration: { evictionsPerMinute: 1 },
    whilePausing: () => {
      if (world.pauses.length > 50) throw new Error('it waits too long');
      world.leading.evictionPace.tryTake('a namespace with rollouts');
    },
  });
  await world.after(0);
  await world.after(29_000);
  world.leading.evictionPace.tryTake('a namespace with rollouts');
  await world.after(1000);
  t.same(world.pods(), []);
});

t.test('a pod that becomes ready while it waits for its turn is not evicted', async (t) => {
  const world = await startWorld(t, {
    pods: names(2),
    whilePausing: (store) => void putPod(store, 'web-1', { ready: true }),
  });
  await world.afterGrace();
  t.same(world.pods(), ['web-1']);
  t.equal(world.store.received(evictions).length, 1);
});

t.test('a pod that changes while it is checked is evicted in its new version', async (t) => {
  // A failed precondition would use up the budget too (kubernetes pkg/registry/core/pod/storage/eviction.go).
  const world = await startWorld(t, { pods: ['web-a'] });
  const { store } = world;
  const owner = 'GET /apis/apps/v1/namespaces/shop/replicasets/web-1';
  store.fault(owner, { times: 1, before: () => void putPod(store, 'web-a', { labels: { crash: '4' } }) });
  await world.afterGrace();
  t.same(world.pods(), []);
  t.equal(store.received(evictions).length, 1);
});

t.test('an eviction that a budget blocks is retried with back-off, and delays no other pod', async (t) => {
  const world = await startWorld(t, { pods: ['web-a', 'web-b'] });
  const { store } = world;
  const held = () => world.events.filter(({ reason }) => reason === 'MisplacedPodHeld');
  store.evictions(podPath('web-a'), { status: 429, retryAfter: 10 }, { status: 429 }, { status: 429 });
  await world.afterGrace();
  t.same(world.pods(), ['web-a']);
  t.match(held(), [{ about: { kind: 'Pod' } }, { about: { kind: 'Deployment' } }]);
  t.equal(held().length, 2);
  const delays: number[] = [];
  let last = world.now();
  for (let n = 0; n < 200 && world.pods().length > 0; n += 1) {
    await world.clock.advance(5000);
    const before = store.received(evictions).length;
    await world.reconcile();
    if (store.received(evictions).length === before) continue;
    delays.push(Math.round((world.now() - last) / 1000));
    last = world.now();
  }
  t.same(world.pods(), []);
  t.same(delays, [15, 30, 60]);
  t.equal(held().length, 2);
  t.equal(await world.series('archwright_misplaced_pods_total{outcome="held"}'), 3);
});

t.test('a pod created while a budget blocks the first eviction is no successor', async (t) => {
  const world = await startWorld(t, { pods: ['web-a'] });
  const { store } = world;
  store.evictions(podPath('web-a'), { status: 429 });
  await world.afterGrace();
  t.same(world.pods(), ['web-a']);
  t.same(world.notes(), {}, 'no eviction to note');
  store.remove(podPath('web-a'));
  await world.clock.advance(60_000);
  putPod(store, 'web-b', { createdAt: world.now() });
  await world.after(10_000);
  await world.afterGrace();
  t.same(world.pods(), [], 'the new pod is evicted');
  t.equal(Object.keys(world.notes()).length, 1, 'the eviction is noted');
});

for (const status of [403, 422, 400, 500]) {
  const isSure = status === 403 || status === 422;
  t.test(
    `after a failed eviction (${status}), a new pod ${isSure ? 'is no' : 'may be a'} successor`,
    async (t) => {
      const world = await startWorld(t, { pods: ['web-a'] });
      const { store } = world;
      const end = store.fault(evictions, { status });
      await world.afterGrace();
      t.same(world.pods(), ['web-a']);
      end();
      store.remove(podPath('web-a'));
      await world.clock.advance(60_000);
      putPod(store, 'web-b', { createdAt: world.now() });
      await world.after(0);
      await world.afterGrace();
      t.same(world.pods(), isSure ? [] : ['web-b']);
    },
  );
}

t.test('a refused eviction does not stop others; five refusals in a row do', async (t) => {
  const world = await startWorld(t, { pods: names(9) });
  const { store } = world;
  const twoBudgets = { times: 1, status: 500, message: 'more than one budget' };
  store.fault(`POST ${podPath('web-0')}/eviction`, twoBudgets);
  await world.afterGrace();
  t.same(world.pods(), ['web-0']);
  for (const name of names(9)) putPod(store, name);
  store.fault(evictions, { status: 403 });
  const before = store.received(evictions).length;
  await t.rejects(world.afterGrace(), /refuses evictions/);
  t.equal(store.received(evictions).length - before, 5);
});

const needed = [/GET .*\/pods\/web-a$/, /GET .*replicasets/, /GET .*configmaps/, /(PATCH|POST) .*configmaps/];
for (const path of needed) {
  t.test(`no pod is evicted while ${path.source} fails`, async (t) => {
    const world = await startWorld(t, { pods: ['web-a'] });
    const end = world.store.fault(path, { status: 503 });
    await t.rejects(world.afterGrace(), { code: 'unavailable' });
    t.same(world.store.received(evictions), []);
    end();
    await world.reconcile();
    t.same(world.pods(), []);
  });
}

/** A leader that has led for a while counts only its own evictions. */
async function ledForAWhile(t: Test): Promise<World> {
  const world = await withPods(t, 4);
  await world.clock.advance(10 * 60_000);
  return world;
}

t.test('an eviction with a lost response counts as in progress', async (t) => {
  for (const carriedOut of [true, false]) {
    const world = await ledForAWhile(t);
    world.store.fault(evictions, { times: 1, ...(carriedOut ? { lost: true } : { reset: true }) });
    await world.afterGrace();
    t.equal(world.pods().length, carriedOut ? 3 : 4, 'no second eviction in the same reconcile');
    t.equal(world.store.received(evictions).length, 1);
    await world.settled();
    for (let look = 0; look < 3; look += 1) {
      await world.after(16_000);
      await world.settled();
      t.equal(world.pods().length, 3, 'one eviction, at the first or second attempt');
    }
  }
});

t.test('an eviction that times out is not repeated for another pod', async (t) => {
  const world = await ledForAWhile(t);
  world.store.fault(evictions, { times: 1, status: 504 });
  await t.rejects(world.afterGrace(), { code: 'timeout' });
  const [eviction] = world.store.received(evictions);
  t.ok(eviction);
  world.store.remove(eviction?.path.replace('/eviction', '') ?? '');
  await world.after(16_000);
  t.equal(world.pods().length, 3, 'the first eviction was carried out, so no second one');
});

t.test('an eviction that never succeeds gives way to another pod', async (t) => {
  const world = await ledForAWhile(t);
  let first: string | undefined;
  const isOfFirst = (path: string): boolean => path.endsWith('/eviction') && path === (first ??= path);
  world.store.fault(({ path }) => isOfFirst(path), { status: 500, message: 'two budgets' });
  await world.afterGrace();
  t.equal(world.pods().length, 4);
  for (let look = 0; look < 8; look += 1) await world.after(10_000);
  t.same(world.pods().length, 3, 'another pod is evicted');
});

t.test('the next leader completes the work of one that was killed between any two steps', async (t) => {
  for (const step of ['misplaced/noted', 'misplaced/evicted']) {
    const first = await startWorld(t, {
      step: (name) => {
        if (name === step) throw new Error('killed');
      },
    });
    putPod(first.store, 'web-a');
    await t.rejects(first.afterGrace(), /killed/);
    first.depose();
    const second = await startWorld(t, { over: first });
    await second.afterGrace();
    t.same(second.pods(), [], step);
    t.equal(first.store.received(evictions).length, 1);
  }
});

const running = (uid: string, more: Partial<RunningPod> = {}): RunningPod => runningPod({ uid, ...more });
const succeeded = running('a', { phase: 'Succeeded' });
/** Not ready, and created at this time. */
const unready = (createdAt: number): RunningPod => running('a', { ready: false, createdAt });

const shares: Readonly<Record<string, readonly [disrupted: number, input: Partial<DisruptionInput>]>> = {
  nobody: [0, {}],
  going: [1, { pods: [running('a', { deleting: true }), running('b')] }],
  'evicted, not yet deleted in the cache': [1, { evicted: new Set(['a']) }],
  'evicted and gone': [1, { evicted: new Set(['z']), wanted: 3, maxMissing: 1 }],
  'missing for another reason': [1, { wanted: 30, maxMissing: 1 }],
  'more than wanted': [0, { wanted: 1, maxMissing: 5 }],
  ended: [0, { pods: [succeeded], wanted: 0, maxMissing: 9 }],
  'a successor that is not ready': [1, { pods: [unready(100)], since: 100, now: 1000 }],
  'not ready, but there before': [0, { pods: [unready(99)], since: 100, now: 1000 }],
};
for (const [name, [disrupted, input]] of Object.entries(shares)) {
  t.test(`the number of disrupted pods: ${name}`, async (t) => {
    const pods = [running('a'), running('b')];
    const usual = {
      pods,
      wanted: undefined,
      evicted: new Set<string>(),
      maxMissing: 0,
      since: undefined,
      now: 0,
    };
    t.equal(disruptedPods({ ...usual, ...input }), disrupted);
  });
}

t.test('the disruption limit is at least one', async (t) => {
  const ofAQuarter = [1, 7, 8].map((pods) => maxUnavailable(pods, 25));
  t.same([...ofAQuarter, maxUnavailable(10, 100), maxUnavailable(0, 1)], [1, 1, 2, 10, 1]);
});

t.test('an error for one pod does not stop the eviction of others, a temporary one is retried', async (t) => {
  const world = await startWorld(t, { pods: ['odd', 'web-b'] });
  const isOfZone = ({ verb, query }: StoreRequest): boolean =>
    verb === 'GET' && (query.get('labelSelector') ?? '').includes('zone');
  world.store.fault(isOfZone, { status: 400, message: 'unable to parse requirement' });
  putPod(world.store, 'odd', { spec: requiring(termOf(isIn('zone', 'refused'))) });
  await world.afterGrace();
  t.same(world.pods(), ['odd']);
  t.ok(world.lines.some((line) => line.includes('could not be evicted') && line.includes('"odd"')));
  world.store.fault(/^GET .*\/pods\/odd$/u, { status: 503 });
  await world.clock.advance(60_000);
  await t.rejects(world.reconcile(), { code: 'unavailable' }, 'a temporary error ends the reconcile');
});
