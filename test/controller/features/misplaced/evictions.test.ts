/** Evictions: how many at once, how fast, once per cause, confirmed by another lookup, also after faults. */
import t, { type Test } from 'tap';
import type { FactsByImage, PodFactsRequest } from '../../../../src/cluster/facts-of-pod.ts';
import { facts, factsFrom, failed } from '../../../support/placement-input.ts';
import { factsByImage } from '../../leader.ts';
import type { ImageFacts } from '../../../../src/images/facts/facts.ts';
import { digest, evictions, known, podPath, putPod, startWorld, webOwner, type World } from './setup.ts';
import { like } from '../../../support/like.ts';

const replicaSets = '/apis/apps/v1/namespaces/shop/replicasets';
const quarter = { misplacedPodsShare: 25 };
const names = (count: number): string[] => Array.from({ length: count }, (_, n) => `web-${n}`);

/** A successor may seem a second older than the eviction. */
const aSecondBefore = (world: World): number => Math.floor(world.now() / 1000) * 1000 - 1000;

/** This number of misplaced pods, with a disruption limit of a quarter. */
const withPods = (t: Test, count: number): Promise<World> =>
  startWorld(t, { pods: names(count), configuration: quarter });

t.test('evictions stay within the disruption limit, and continue when successors are ready', async (t) => {
  const world = await withPods(t, 8);
  await world.afterGrace();
  // The evictions are two seconds apart.
  const createdAt = aSecondBefore(world) - 2000;
  t.equal(world.pods().length, 6);
  await world.after(20_000);
  t.equal(world.pods().length, 6, 'two are missing');

  const gone = names(8).filter((name) => !world.pods().includes(name));
  for (const name of gone) putPod(world.store, `${name}-next`, { node: 'amd-1', createdAt: world.now() });
  await world.after(20_000);
  t.equal(world.pods().length, 8, 'two are not ready yet');
  putPod(world.store, `${gone[0]}-next`, { node: 'amd-1', createdAt, ready: true });
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
  await world.after(16_000);
  t.equal(world.pods().length, 7, 'one of the Deployment, not one of each ReplicaSet');
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

t.test('a leader moves a workload once per cause', async (t) => {
  const given: Record<string, ImageFacts> = { ...known };
  const first = await startWorld(t, { pods: ['web-a'], facts: given });
  const { store } = first;
  await first.afterGrace();
  t.strictSame(first.pods(), []);
  putPod(store, 'web-b', { createdAt: aSecondBefore(first) });
  await first.afterGrace();
  t.strictSame(first.pods(), ['web-b']);
  like(t, first.events.at(-1), { reason: 'MisplacedPodAgain', about: { kind: 'Deployment', name: 'web' } });
  t.equal(await first.series('archwright_misplaced_pods_total{outcome="again"}'), 1);
  const events = first.events.length;
  await first.after(3_600_000);
  t.equal(first.events.length, events, 'no further event');

  given['app:1'] = facts('amd64', { digest: digest('d') });
  putPod(store, 'web-c', { createdAt: first.now(), imageID: '' });
  await first.afterGrace();
  t.equal(first.pods().length, 1, 'another image is another cause');
  first.depose();

  const second = await startWorld(t, { over: first });
  await second.afterGrace();
  t.strictSame(second.pods(), [], 'the next leader begins anew');
});

t.test('a pod is evicted only if another lookup confirms its facts', async (t) => {
  const given: Record<string, ImageFacts> = { ...known };
  const world = await startWorld(t, {
    facts: given,
    configuration: { evictionsPerMinute: 30 },
    whilePausing: () => void (given['app:1'] = facts('amd64 arm64', { digest: digest('d') })),
  });
  for (const name of ['web-a', 'web-b']) putPod(world.store, name, { imageID: '' });
  await world.afterGrace();
  t.equal(world.pods().length, 1, 'the other one has waited for its turn, and can run there now');
});

t.test('a pod that waits for its turn stays if nothing may evict it any more', async (t) => {
  const optOut = { 'arch.example/placement': 'disabled' };
  const changes: Readonly<Record<string, (world: World) => void>> = {
    'evictions are switched off': ({ configure }) => configure({ misplacedPods: 'off' }),
    'pods are only reported': ({ configure }) => configure({ misplacedPods: 'event' }),
    'the pod opts out': ({ store, pods }) => void putPod(store, pods()[0] ?? '', { labels: optOut }),
  };
  for (const [what, change] of Object.entries(changes)) {
    const configuration = { evictionsPerMinute: 1 };
    const whilePausing = (): void => change(world);
    const world = await startWorld(t, { pods: names(2), configuration, whilePausing });
    await world.afterGrace();
    t.equal(world.pods().length, 1, what);
  }
});

t.test('`evictionsPerMinute` spaces evictions', async (t) => {
  const world = await startWorld(t, { pods: names(40), configuration: { evictionsPerMinute: 30 } });
  await world.afterGrace();
  t.strictSame(world.pods(), []);
  t.equal(world.pauses.length, 39);
  t.ok(world.pauses.every((ms) => ms === 2000));
});

/** A rollout takes its turn; its pod has changed meanwhile. */
const rolloutEvicts = ({ leader }: Awaited<ReturnType<typeof startWorld>>) =>
  leader.evict('a namespace with rollouts', () => Promise.resolve(undefined));

t.test('a rollout that takes each eviction at once leaves half of them to misplaced pods', async (t) => {
  const world = await startWorld(t, {
    pods: ['web-a'],
    configuration: { evictionsPerMinute: 1 },
    whilePausing: () => {
      if (world.pauses.length > 50) throw new Error('it waits too long');
      void rolloutEvicts(world);
    },
  });
  await world.after(0);
  await world.after(29_000);
  await rolloutEvicts(world);
  await world.after(1000);
  t.strictSame(world.pods(), []);
});

t.test('a pod that changes while it is checked is evicted in its new version', async (t) => {
  // A failed precondition would use up the budget too (kubernetes pkg/registry/core/pod/storage/eviction.go).
  const world = await startWorld(t, { pods: ['web-a'] });
  const { store } = world;
  const owner = 'GET /apis/apps/v1/namespaces/shop/replicasets/web-1';
  store.fault(owner, { times: 1, before: () => void putPod(store, 'web-a', { labels: { crash: '4' } }) });
  await world.afterGrace();
  t.strictSame(world.pods(), []);
  t.equal(store.received(evictions).length, 1);
});

t.test('an eviction that a budget blocks is retried with back-off, and delays no other pod', async (t) => {
  const world = await startWorld(t, { pods: ['web-a', 'web-b'] });
  const { store } = world;
  const held = () => world.events.filter(({ reason }) => reason === 'MisplacedPodHeld');
  const first = { status: 429, retryAfter: 10, message: 'the budget\u001b' };
  store.evictions(podPath('web-a'), first, { status: 429 }, { status: 429 });
  await world.afterGrace();
  t.strictSame(world.pods(), ['web-a']);
  const message = /the budget\?$/;
  like(t, held(), [
    { about: { kind: 'Pod' }, message },
    { about: { kind: 'Deployment' }, message },
  ]);
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
  t.strictSame(world.pods(), []);
  t.strictSame(delays, [15, 30, 60]);
  t.equal(held().length, 2);
  t.equal(await world.series('archwright_misplaced_pods_total{outcome="held"}'), 3);
});

for (const status of [429, 403, 500])
  t.test(`a pod that is created after a failed eviction (${status}) is no successor`, async (t) => {
    const world = await startWorld(t, { pods: ['web-a'] });
    const { store } = world;
    const end = store.fault(evictions, { status });
    await world.afterGrace();
    t.strictSame(world.pods(), ['web-a']);
    end();
    store.remove(podPath('web-a'));
    await world.clock.advance(60_000);
    putPod(store, 'web-b', { createdAt: world.now() });
    await world.after(0);
    await world.afterGrace();
    t.strictSame(world.pods(), []);
  });

const cases: readonly [name: string, confirmed: ImageFacts | undefined, isEvicted: boolean][] = [
  ['confirms', known['app:1'], true],
  ['says that the tag was pushed again', facts('amd64 arm64', { digest: digest('c') }), false],
  ['fails', failed('timeout'), false],
  ['gives older facts', facts('amd64', { digest: digest('a'), stale: true }), false],
  ['does not end', undefined, false],
];

for (const [name, confirmed, isEvicted] of cases) {
  t.test(`the lookup before an eviction ${name}: ${isEvicted ? 'evicted' : 'stays'}`, async (t) => {
    const requests: PodFactsRequest[] = [];
    const world = await startWorld(t, {
      factsOfPod: (request) => {
        const { uses, maxAgeMs } = request;
        if (maxAgeMs !== undefined) requests.push(request);
        const factsOf = (image: string) => (maxAgeMs === undefined ? known[image] : confirmed);
        return Promise.resolve(factsByImage(uses, factsOf));
      },
    });
    putPod(world.store, 'web-a', { imageID: '' });
    await world.afterGrace();
    t.equal(world.store.received(evictions).length, isEvicted ? 1 : 0);
    t.strictSame(
      requests.map(({ uses, maxAgeMs }) => [uses.map(({ image }) => image), maxAgeMs]),
      [[['app:1'], 5000]],
    );
  });
}

t.test('the digest that the node pulled is looked up in place of the tag', async (t) => {
  const pulled = `docker.io/library/app@${digest('a')}`;
  const images: string[] = [];
  const world = await startWorld(t, {
    factsOfPod: ({ uses, maxAgeMs }) => {
      if (maxAgeMs !== undefined) images.push(...uses.map(({ image }) => image));
      return Promise.resolve(factsByImage(uses, () => known['app:1']));
    },
  });
  putPod(world.store, 'web-a', { imageID: `docker-pullable://${pulled}` });
  await world.afterGrace();
  t.strictSame(images, [pulled]);
  t.equal(world.store.received(evictions).length, 1);
});

t.test('attack: a lookup that hangs does not delay the eviction of another pod', async (t) => {
  const slow = Promise.withResolvers<FactsByImage>();
  const world = await startWorld(t, {
    factsOfPod: ({ uses, namespace }) =>
      namespace === 'attacker' ? slow.promise : Promise.resolve(factsByImage(uses, factsFrom(known))),
  });
  putPod(world.store, 'slow', { namespace: 'attacker' });
  putPod(world.store, 'web-a');
  const reconciling = world.afterGrace();
  await world.store.until(() => world.store.received(evictions).length === 1);
  slow.resolve(new Map());
  await reconciling;
  t.strictSame(world.pods(), ['slow']);
});
