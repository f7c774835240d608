/** Which pods are evicted, and why others are not. */
import t, { type Test } from 'tap';
import type { Configuration } from '../../../../src/policy/configuration/configuration.ts';
import { archIn, facts, failed, requiring, termOf } from '../../../support/placement-input.ts';
import { webhooksFile } from '../../leader.ts';
import {
  digest,
  evictions,
  known,
  podPath,
  pulled,
  putPod,
  serverStart,
  startWorld,
  type PodOptions,
  type World,
} from './setup.ts';
import { like } from '../../../support/like.ts';

t.test('a pod is evicted through the Eviction API with its uid, with events', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  const { uid, resourceVersion } = putPod(store, 'web-a').metadata;
  await world.afterGrace();
  t.strictSame(world.pods(), []);
  const [request, ...others] = store.writes();
  t.strictSame(others, []);
  like(t, request?.json, {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'web-a', namespace: 'shop' },
    deleteOptions: { preconditions: { uid, resourceVersion } },
  });
  const message = /not ready on node arm-1 \(arm64\): app:1 has amd64\. It is evicted/;
  const event = { type: 'Warning', reason: 'MisplacedPodEvicted', message };
  const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'deployment-uid' };
  like(t, world.events, [
    { ...event, about: { kind: 'Pod', namespace: 'shop', name: 'web-a', uid } },
    { ...event, about: { ...deployment, namespace: 'shop' } },
  ]);
  t.equal(await world.series('archwright_misplaced_pods_total{outcome="evicted"}'), 1);
});

interface Case {
  readonly pod?: PodOptions;
  readonly configuration?: Partial<Configuration>;
  readonly facts?: typeof known;
  readonly before?: (world: World) => void;
}
type Cases = Readonly<Record<string, Case>>;

const running = { state: { running: {} }, restartCount: 0 };
const cPulled = pulled('c');
const otherPulled = (platforms: string): typeof known => ({
  ...known,
  [cPulled]: facts(platforms, { digest: digest('c') }),
});

const moved: Cases = {
  'with an owner of an unknown kind': {
    pod: { owner: { apiVersion: 'x.example/v1', kind: 'Rollout', name: 'x', uid: 'x', controller: true } },
  },
  'whose ReplicaSet may not be read': {
    before: ({ store }) => void store.fault(/GET .*replicasets/, { status: 403 }),
  },
  'whose container failed and does not restart': {
    pod: { status: { state: { terminated: { reason: 'Error', exitCode: 255 } }, restartCount: 2 } },
  },
  'with an image that cannot be pulled there': {
    pod: { phase: 'Pending', imageID: '', status: { state: { waiting: { reason: 'ImagePullBackOff' } } } },
  },
  'without any status': { pod: { phase: 'Pending', status: { state: {} }, imageID: '' } },
  'that pulled an older image of the tag, which lacks the architecture too': {
    pod: { imageID: `docker-pullable://${cPulled}` },
    facts: otherPulled('amd64'),
  },
};

const stays: Cases = {
  ready: { pod: { ready: true } },
  'on a node that can run it': { pod: { node: 'amd-1' } },
  'with an image that has both': { pod: { image: 'both:1' } },
  'without an owner': { pod: { owner: null } },
  static: { pod: { annotations: { 'kubernetes.io/config.mirror': 'x' } } },
  'owned, but not controlled': { pod: { owner: { apiVersion: 'v1', kind: 'X', name: 'x', uid: 'x' } } },
  'whose ReplicaSet is gone': {
    before: ({ store }) => store.remove('/apis/apps/v1/namespaces/shop/replicasets/web-1'),
  },
  ended: { pod: { phase: 'Failed' } },
  'created a moment ago': { pod: { createdAt: serverStart + 10_000 } },
  'never pulled': { pod: { pullPolicy: 'Never' } },
  'with an unknown image': { facts: {} },
  'with a failing registry': { facts: { 'app:1': failed('unavailable') } },
  'with old facts': { facts: { 'app:1': facts('amd64', { stale: true }) } },
  'with an artifact': { facts: { 'app:1': facts('') } },
  'whose container runs (under an emulator)': { pod: { status: running } },
  'whose container failed and runs again (under an emulator)': {
    pod: {
      status: {
        state: { running: {} },
        lastState: { terminated: { reason: 'Error', exitCode: 1 } },
        restartCount: 2,
      },
    },
  },
  'with a ready container, and one that is not ready': { pod: { status: { ...running, ready: true } } },
  'whose container succeeded': {
    pod: { status: { state: { terminated: { reason: 'Completed', exitCode: 0 } } } },
  },
  'that pulled an older image of the tag, which has both architectures': {
    pod: { imageID: cPulled },
    facts: otherPulled('amd64 arm64'),
  },
  'that pulled an unknown digest': { pod: { imageID: cPulled } },
  'whose image was imported': { pod: { imageID: digest('c') } },
  'under misplacedPods = off': { configuration: { misplacedPods: 'off' } },
  'on an unknown node': { pod: { node: 'gone' } },
};

const disabled = { 'arch.example/placement': 'disabled' };
/** A person chose the node. Such a pod does not count as misplaced. */
const chosen: Cases = {
  'disabled by label': { pod: { labels: disabled } },
  'in a disabled namespace': {
    before: ({ store }) => void store.put('/api/v1/namespaces/shop', { metadata: { labels: disabled } }),
  },
  'that requires the architecture': { pod: { spec: requiring(termOf(archIn('arm64'))) } },
};

/** The pod after the reconcile that may evict it. */
async function reconciled(t: Test, { pod, configuration, facts: given, before }: Case) {
  const world = await startWorld(t, { configuration, ...(given && { facts: given }) });
  const { store, leader } = world;
  putPod(store, 'web-a', pod);
  before?.(world);
  await world.settled();
  await store.until(() => leader.caches.namespaces.size === store.list('/api/v1/namespaces').length);
  await world.afterGrace();
  return world;
}

for (const [name, given] of Object.entries({ ...moved, ...stays, ...chosen })) {
  const isMoved = name in moved;
  t.test(`a pod ${name}: ${isMoved ? 'moved' : 'stays'}`, async (t) => {
    const world = await reconciled(t, given);
    t.strictSame(world.pods(), isMoved ? [] : ['web-a']);
    t.equal(world.store.writes().length, isMoved ? 1 : 0);
    if (!isMoved) t.strictSame(world.events, []);
    if (name in chosen) t.equal(await world.series('archwright_misplaced_pods'), 0);
  });
}

const reported: readonly (readonly [name: string, given: Case, event: RegExp])[] = [
  [
    'without a node of the other architecture',
    { before: ({ store }) => store.remove('/api/v1/nodes/amd-1') },
    /no node that its successor could use has one of amd64/,
  ],
  [
    'with an image without a schedulable architecture',
    { configuration: { schedulableArchitectures: ['arm64'] } },
    /no architecture/,
  ],
  ['under misplacedPods = event', { configuration: { misplacedPods: 'event' } }, /would be evicted/],
];
for (const [name, given, event] of reported) {
  t.test(`a pod ${name}: stays, with an event`, async (t) => {
    const world = await reconciled(t, given);
    t.strictSame(world.pods(), ['web-a']);
    t.strictSame(world.store.writes(), []);
    like(t, world.events[0]?.message, event);
    const count = world.events.length;
    await world.after(20 * 60_000);
    t.equal(world.events.length, count, 'once');
  });
}

t.test(
  'a pod where the webhook configuration leaves the namespace out stays, until it is included',
  async (t) => {
    const selector = { matchLabels: { archwright: 'on' } };
    const world = await startWorld(t, { webhooksFile: webhooksFile(t, selector) });
    const { store, leader } = world;
    const { namespaces } = leader.caches;
    store.put('/api/v1/namespaces/shop', { metadata: { labels: { team: 'a' } } });
    putPod(store, 'web-a');
    await store.until(() => namespaces.size === 1);
    await world.afterGrace();
    t.strictSame(world.pods(), ['web-a']);
    t.strictSame(world.events, []);
    t.equal(await world.series('archwright_misplaced_pods'), 0);
    store.put('/api/v1/namespaces/shop', { metadata: { labels: { archwright: 'on' } } });
    await store.until(() => 'archwright' in (namespaces.get('', 'shop') ?? {}));
    await world.after(60_000);
    t.strictSame(world.pods(), []);
  },
);

t.test('a pod that changes between two checks stays', async (t) => {
  const changes: Readonly<Record<string, PodOptions>> = {
    'it is ready': { ready: true },
    'another pod has its name': { metadata: { uid: 'another' } },
    'it is on another node': { node: 'amd-1' },
  };
  for (const [what, change] of Object.entries(changes)) {
    const world = await startWorld(t, { pods: ['web-a'] });
    const { store } = world;
    const before = (): void => void putPod(store, 'web-a', change);
    store.fault(`GET ${podPath('web-a')}`, { times: 1, before });
    await world.afterGrace();
    t.strictSame(world.pods(), ['web-a'], what);
    t.strictSame(store.writes(), [], what);
  }
});

t.test('a pod that changes right before its eviction is not evicted', async (t) => {
  for (const change of ['ready', 'replaced', 'gone']) {
    const world = await startWorld(t, { pods: ['web-a'] });
    const { store } = world;
    store.fault(evictions, {
      times: 1,
      before: () => {
        if (change !== 'ready') store.remove(podPath('web-a'));
        if (change !== 'gone') putPod(store, 'web-a', { ready: true });
      },
    });
    await world.afterGrace();
    t.strictSame(world.pods(), change === 'gone' ? [] : ['web-a'], change);
    t.strictSame(world.events, []);
    t.equal(await world.series('archwright_misplaced_pods_total{outcome="evicted"}'), 0);
  }
});

t.test('the gauge follows the number of misplaced pods, and is 0 under `off`', async (t) => {
  const world = await startWorld(t, { configuration: { misplacedPods: 'event' } });
  putPod(world.store, 'web-a');
  await world.afterGrace();
  t.equal(await world.series('archwright_misplaced_pods'), 1);
  world.configure({ misplacedPods: 'off' });
  t.equal(await world.series('archwright_misplaced_pods'), 0);
  world.configure({ misplacedPods: 'event' });
  world.store.remove(podPath('web-a'));
  await world.after(0);
  t.equal(await world.series('archwright_misplaced_pods'), 0);
});

t.test('a pod that is unready for a moment is not checked', async (t) => {
  const world = await startWorld(t, { pods: ['web-a'] });
  await world.after(0);
  await world.clock.advance(20_000);
  putPod(world.store, 'web-a', { ready: true });
  await world.after(0);
  putPod(world.store, 'web-a');
  await world.after(0);
  await world.after(20_000);
  t.strictSame(world.pods(), ['web-a']);
  await world.after(11_000);
  t.strictSame(world.pods(), []);
});

t.test('a pod whose check is refused is checked again after the usual pause', async (t) => {
  const world = await startWorld(t, { pods: ['web-a'] });
  const owner = /^GET .*replicasets/;
  world.store.fault(owner, { status: 400 });
  await t.rejects(world.afterGrace(), { message: /400/ });
  const count = world.store.received(owner).length;
  await world.after(1000);
  t.equal(world.store.received(owner).length, count);
  await t.rejects(world.after(15_000), 'after the pause');
});
