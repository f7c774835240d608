/** How many go at once, how fast, never twice for one cause, and what faults and a new leader change of that. */
import t from 'tap';
import { facts, requiring } from '../../support/placement-input.ts';
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
  putReplicas,
  startWorld,
  webOwner,
  type World,
} from './setup.ts';

const names = (count: number): string[] => Array.from({ length: count }, (_, n) => `web-${n}`);

async function withPods(t: Parameters<typeof startWorld>[0], count: number, share: number): Promise<World> {
  const world = await startWorld(t, { configuration: { misplacedPodsShare: share } });
  putReplicas(world.store, count);
  for (const name of names(count)) putPod(world.store, name);
  return world;
}

void t.test('a share at a time; the next ones when the successors are ready', async (t) => {
  const world = await withPods(t, 8, 25);
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
  t.equal(world.pods().length, 7, 'one more may go');
});

void t.test('two ReplicaSets of one Deployment have one share', async (t) => {
  const world = await withPods(t, 4, 25);
  const { store } = world;
  const older = { ...webOwner, name: 'web-0', uid: 'older-uid' };
  const set = store.get('/apis/apps/v1/namespaces/shop/replicasets/web-1');
  store.put('/apis/apps/v1/namespaces/shop/replicasets/web-0', {
    ...set,
    metadata: { ownerReferences: set?.metadata.ownerReferences, uid: 'older-uid' },
  });
  for (const name of names(4)) putPod(store, `old-${name}`, { owner: older });
  await world.afterGrace();
  const started = world.pods().length;
  t.ok(started >= 6, 'two of eight');
  await world.after(16_000);
  t.equal(world.pods().length, 6, 'not two of each, and not one');
});

void t.test('a pod from the second at which moving began is a successor', async (t) => {
  const world = await startWorld(t, { pods: ['web-a'] });
  await world.afterGrace();
  const [since = ''] = Object.values(world.notes());
  putPod(world.store, 'web-b', { createdAt: Date.parse(since) });
  await world.afterGrace();
  t.same(world.pods(), ['web-b']);
  t.equal(world.events.at(-1)?.reason, 'MisplacedPodAgain');
});

void t.test('pods that are going count until they are gone', async (t) => {
  const world = await withPods(t, 8, 25);
  const deletionTimestamp = new Date(world.now()).toISOString();
  const pod = world.store.get(podPath('web-7'));
  world.store.put(podPath('web-7'), { ...pod, metadata: { ...pod?.metadata, deletionTimestamp } });
  await world.afterGrace();
  t.equal(world.pods().length, 7, 'one goes by itself, so only one is evicted');
});

void t.test('a successor that never becomes ready does not keep the others for ever', async (t) => {
  const world = await withPods(t, 4, 25);
  await world.afterGrace();
  t.equal(world.pods().length, 3);
  putPod(world.store, 'next', { node: 'amd-1', createdAt: world.now() });
  await world.after(9 * 60_000);
  t.equal(world.pods().length, 4);
  await world.after(2 * 60_000);
  t.equal(world.pods().length, 3);
});

void t.test('a new leader knows what is under way', async (t) => {
  const first = await withPods(t, 8, 25);
  await first.afterGrace();
  t.equal(first.pods().length, 6);
  first.depose();
  const second = await startWorld(t, { over: first, configuration: { misplacedPodsShare: 25 } });
  await second.afterGrace();
  t.equal(second.pods().length, 6, 'two are missing, so none may go');
  await second.after(6 * 60_000);
  t.equal(second.pods().length, 4, 'what is missing now is not our doing');
});

void t.test('never twice for the same cause, also by the next leader', async (t) => {
  const first = await startWorld(t, { pods: ['web-a'] });
  const { store } = first;
  await first.afterGrace();
  t.same(first.pods(), []);
  putPod(store, 'web-b', { createdAt: first.now() });
  await first.afterGrace();
  t.same(first.pods(), ['web-b']);
  t.match(first.events.at(-1), { reason: 'MisplacedPodAgain', about: { kind: 'Deployment', name: 'web' } });
  t.equal(await first.series('archwright_misplaced_pods_total{outcome="again"}'), 1);
  const told = first.events.length;
  await first.after(3_600_000);
  t.equal(first.events.length, told, 'told once');
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
  t.equal(store.asked(evictions).length, 2);
});

void t.test('who takes the note away wants it moved again', async (t) => {
  const first = await startWorld(t, { pods: ['web-a'] });
  await first.afterGrace();
  first.store.remove(notesPath);
  const second = await startWorld(t, { over: first });
  putPod(first.store, 'web-b', { createdAt: second.now() });
  await second.afterGrace();
  t.same(second.pods(), []);
});

void t.test('notes that nobody could have written, and a note of a thing that went', async (t) => {
  const world = await startWorld(t);
  world.store.put(notesPath, { data: { x: 'y', ['0'.repeat(32)]: 'never', ['1'.repeat(32)]: '' } });
  putPod(world.store, 'web-a');
  await world.afterGrace();
  t.same(world.pods(), []);
  t.equal(Object.keys(world.notes()).length, 4, 'others stay');
});

void t.test('evictions per minute', async (t) => {
  const world = await startWorld(t, { configuration: { evictionsPerMinute: 30 } });
  putReplicas(world.store, 25);
  for (const name of names(25)) putPod(world.store, name);
  t.equal(await world.afterGrace(), true, 'more is to be done');
  t.equal(world.pods().length, 5, 'as many as one pass does');
  t.equal(world.pauses.length, 19);
  t.ok(world.pauses.every((ms) => ms === 2000));
  await world.after(0);
  t.same(world.pods(), []);
});

void t.test('a pod that changes while it waits for its turn is not asked for', async (t) => {
  const world = await startWorld(t, {
    whilePausing: (store) => void putPod(store, 'web-1', { ready: true }),
  });
  putReplicas(world.store, 2);
  for (const name of names(2)) putPod(world.store, name);
  await world.afterGrace();
  t.same(world.pods(), ['web-1']);
  t.equal(world.store.asked(evictions).length, 1);
});

void t.test('a budget holds an eviction: tried later and later, one event, no other pod waits', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  putReplicas(store, 2);
  putPod(store, 'web-a');
  putPod(store, 'web-b');
  store.evictions(podPath('web-a'), { status: 429, retryAfter: 10 }, { status: 429 }, { status: 429 });
  await world.afterGrace();
  t.same(world.pods(), ['web-a']);
  t.match(
    world.events.filter(({ reason }) => reason === 'MisplacedPodHeld').map(({ about }) => about.kind),
    ['Pod', 'Deployment'],
  );
  const asked: number[] = [];
  let last = world.now();
  for (let n = 0; n < 200 && world.pods().length > 0; n += 1) {
    await world.clock.advance(5000);
    const before = store.asked(evictions).length;
    await world.reconcile();
    if (store.asked(evictions).length === before) continue;
    asked.push(Math.round((world.now() - last) / 1000));
    last = world.now();
  }
  t.same(world.pods(), []);
  t.same(asked, [15, 30, 60]);
  t.equal(world.events.filter(({ reason }) => reason === 'MisplacedPodHeld').length, 2);
  t.equal(await world.series('archwright_misplaced_pods_total{outcome="held"}'), 3);
});

void t.test('what is made while a budget holds the first eviction back is no successor', async (t) => {
  const world = await startWorld(t, { pods: ['web-a'] });
  const { store } = world;
  store.evictions(podPath('web-a'), { status: 429 });
  await world.afterGrace();
  t.same(world.pods(), ['web-a']);
  t.same(world.notes(), {}, 'nothing was moved');
  store.remove(podPath('web-a'));
  await world.clock.advance(60_000);
  putPod(store, 'web-b', { createdAt: world.now() });
  await world.after(10_000);
  await world.afterGrace();
  t.same(world.pods(), [], 'the next one is moved');
  t.equal(Object.keys(world.notes()).length, 1, 'and that is noted');
});

for (const { status, isSure } of [
  { status: 403, isSure: true },
  { status: 422, isSure: true },
  { status: 400, isSure: false },
  { status: 500, isSure: false },
]) {
  void t.test(`what is made after a first eviction that failed with ${status}`, async (t) => {
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
    t.same(world.pods(), isSure ? [] : ['web-b'], isSure ? 'is no successor' : 'may be a successor');
  });
}

void t.test('an eviction that the API server refuses, and one that refuses all', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  putReplicas(store, 9);
  for (const name of names(9)) putPod(store, name);
  store.fault(`POST ${podPath('web-0')}/eviction`, {
    times: 1,
    status: 500,
    message: 'more than one budget',
  });
  await world.afterGrace();
  t.same(world.pods(), ['web-0']);
  for (const name of names(9)) putPod(store, name);
  store.fault(evictions, { status: 403 });
  const before = store.asked(evictions).length;
  await t.rejects(world.afterGrace(), /refuses evictions/);
  t.equal(store.asked(evictions).length - before, 5);
});

for (const path of [
  /GET .*\/pods\/web-a$/,
  /GET .*replicasets/,
  /GET .*configmaps/,
  /(PATCH|POST) .*configmaps/,
]) {
  void t.test(`${path.source} fails: nothing is evicted; then it is`, async (t) => {
    const world = await startWorld(t, { pods: ['web-a'] });
    const end = world.store.fault(path, { status: 503 });
    await t.rejects(world.afterGrace(), { code: 'unavailable' });
    t.same(world.store.asked(evictions), []);
    end();
    await world.reconcile();
    t.same(world.pods(), []);
  });
}

void t.test('an eviction whose answer is lost counts as one under way', async (t) => {
  for (const carriedOut of [true, false]) {
    const world = await withPods(t, 4, 25);
    // A leader that has led for a while knows what it did itself, and counts nothing else.
    await world.clock.advance(10 * 60_000);
    world.store.fault(evictions, { times: 1, ...(carriedOut ? { lost: true } : { reset: true }) });
    await world.afterGrace();
    t.equal(world.pods().length, carriedOut ? 3 : 4, 'no second one in the same pass');
    t.equal(world.store.asked(evictions).length, 1);
    await world.settled();
    for (let look = 0; look < 3; look += 1) {
      await world.after(16_000);
      await world.settled();
      t.equal(world.pods().length, 3, 'one, at the first try or the second');
    }
  }
});

void t.test('an eviction that ends without an answer in time, and one that never succeeds', async (t) => {
  const late = await withPods(t, 4, 25);
  await late.clock.advance(10 * 60_000);
  late.store.fault(evictions, { times: 1, status: 504 });
  await t.rejects(late.afterGrace(), { code: 'timeout' });
  const [asked] = late.store.asked(evictions);
  t.ok(asked);
  late.store.remove(asked?.path.replace('/eviction', '') ?? '');
  await late.after(16_000);
  t.equal(late.pods().length, 3, 'it was carried out: no second one');

  const never = await withPods(t, 4, 25);
  await never.clock.advance(10 * 60_000);
  let first: string | undefined;
  never.store.fault(({ path }) => path.endsWith('/eviction') && path === (first ??= path), {
    status: 500,
    message: 'two budgets',
  });
  await never.afterGrace();
  t.equal(never.pods().length, 4);
  for (let look = 0; look < 8; look += 1) {
    await never.after(10_000);
  }
  t.same(never.pods().length, 3, 'another one has gone');
});

void t.test('a leader that ends between any two steps', async (t) => {
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
    t.equal(first.store.asked(evictions).length, 1);
  }
});

const running = (uid: string, more: Partial<RunningPod> = {}): RunningPod => runningPod({ uid, ...more });

const shares: readonly { name: string; input: Partial<DisruptionInput>; disrupted: number }[] = [
  { name: 'nobody', input: {}, disrupted: 0 },
  { name: 'going', input: { pods: [running('a', { deleting: true }), running('b')] }, disrupted: 1 },
  { name: 'evicted, not yet seen', input: { evicted: new Set(['a']) }, disrupted: 1 },
  { name: 'evicted and gone', input: { evicted: new Set(['z']), wanted: 3, maxMissing: 1 }, disrupted: 1 },
  { name: 'missing for reasons of its own', input: { wanted: 30, maxMissing: 1 }, disrupted: 1 },
  { name: 'more than wanted', input: { wanted: 1, maxMissing: 5 }, disrupted: 0 },
  {
    name: 'ended',
    input: { pods: [running('a', { phase: 'Succeeded' })], wanted: 0, maxMissing: 9 },
    disrupted: 0,
  },
  {
    name: 'a successor that is not ready',
    input: { pods: [running('a', { ready: false, createdAt: 100 })], since: 100, now: 1000 },
    disrupted: 1,
  },
  {
    name: 'not ready, but there before',
    input: { pods: [running('a', { ready: false, createdAt: 99 })], since: 100, now: 1000 },
    disrupted: 0,
  },
];
for (const { name, input, disrupted } of shares) {
  void t.test(`disrupted: ${name}`, async (t) => {
    const given: DisruptionInput = {
      pods: [running('a'), running('b')],
      wanted: undefined,
      evicted: new Set(),
      maxMissing: 0,
      since: undefined,
      now: 0,
      ...input,
    };
    t.equal(disruptedPods(given), disrupted);
  });
}

void t.test('one may always move', async (t) => {
  t.same(
    [
      maxUnavailable(1, 25),
      maxUnavailable(7, 25),
      maxUnavailable(8, 25),
      maxUnavailable(10, 100),
      maxUnavailable(0, 1),
    ],
    [1, 1, 2, 10, 1],
  );
});

void t.test('what is refused because of one pod keeps no other from being moved', async (t) => {
  const world = await startWorld(t);
  putReplicas(world.store, 2);
  const term = { matchExpressions: [{ key: 'zone', operator: 'In', values: ['refused'] }] };
  world.store.fault(
    ({ verb, query }) => verb === 'GET' && (query.get('labelSelector') ?? '').includes('zone'),
    {
      status: 400,
      message: 'unable to parse requirement',
    },
  );
  putPod(world.store, 'odd', { spec: requiring(term) });
  putPod(world.store, 'web-b');
  await world.afterGrace();
  t.same(world.pods(), ['odd']);
  t.ok(world.lines.some((line) => line.includes('could not be evicted') && line.includes('"odd"')));
  world.store.fault(/^GET .*\/pods\/odd$/u, { status: 503 });
  await world.clock.advance(60_000);
  await t.rejects(world.reconcile(), { code: 'unavailable' }, 'what passes ends the pass, and is waited for');
});
