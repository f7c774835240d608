/** Which pods are moved, and which are not, each for its reason. */
import t, { type Test } from 'tap';
import type { Configuration } from '../../../src/policy/configuration/configuration.ts';
import type { NodeSelectorRequirement, Taint } from '../../../src/kube/api/objects.ts';
import { archIn, facts, failed, isIn, notIn, requiring, termOf } from '../../support/placement-input.ts';
import { webhooksFile } from '../leading.ts';
import {
  digest,
  evictions,
  known,
  notesPath,
  podPath,
  putNode,
  putPod,
  serverStart,
  startWorld,
  type PodOptions,
  type World,
} from './setup.ts';

void t.test('evicted by the Eviction API with its uid, after a note, with events', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  const { uid, resourceVersion } = putPod(store, 'web-a').metadata;
  await world.afterGrace();
  t.same(world.pods(), []);
  const [request] = store.asked(evictions);
  t.match(request?.json, {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'web-a', namespace: 'shop' },
    deleteOptions: { preconditions: { uid, resourceVersion } },
  });
  t.same(
    store.writes().map(({ method, path }) => `${method} ${path}`),
    ['POST /api/v1/namespaces/archwright/configmaps', `POST ${podPath('web-a')}/eviction`],
  );
  const { data } = store.get(notesPath) as unknown as { data: Record<string, string> };
  t.same(Object.values(data), [new Date(serverStart + 31_000 - 15_000).toISOString()]);
  t.match(Object.keys(data), [/^[0-9a-f]{32}$/]);
  t.match(store.get(notesPath)?.metadata.labels, {
    'app.kubernetes.io/managed-by': 'archwright-controller',
  });
  t.match(world.events, [
    {
      type: 'Warning',
      reason: 'MisplacedPodEvicted',
      about: { kind: 'Pod', namespace: 'shop', name: 'web-a', uid },
      message: /not ready on node arm-1 \(arm64\): app:1 has amd64\. It is evicted/,
    },
    {
      about: {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        namespace: 'shop',
        name: 'web',
        uid: 'deployment-uid',
      },
    },
  ]);
  t.same(world.steps, ['misplaced/noted', 'misplaced/evicted']);
  t.equal(await world.series('archwright_misplaced_pods_total{outcome="evicted"}'), 1);
});

interface Case {
  readonly pod?: PodOptions;
  readonly configuration?: Partial<Configuration>;
  readonly facts?: typeof known;
  /** Labels of a second node of amd64. */
  readonly amd2?: Readonly<Record<string, string>>;
  /** Of the node of amd64. */
  readonly taint?: Taint;
  readonly before?: (world: World) => void;
}
type Cases = Readonly<Record<string, Case>>;

const running = { state: { running: {} }, restartCount: 0 };
const selecting = (nodeSelector: object): Case => ({ pod: { spec: { nodeSelector } } });
const cPulled = `registry.example/app@${digest('c')}`;
const otherPulled = (platforms: string): typeof known => ({
  ...known,
  [cPulled]: facts(platforms, { digest: digest('c') }),
});
const matching = (...terms: readonly NodeSelectorRequirement[][]): PodOptions => ({
  spec: requiring(...terms.map((each) => termOf(...each))),
});
const exists = (key: string): NodeSelectorRequirement => ({ key, operator: 'Exists' });
const amdLabel = { 'kubernetes.io/arch': 'amd64' };
const gpu = [exists('gpu')];

const requireLabels: Partial<Configuration> = {
  architectures: { amd64: { taintsToTolerate: [], requireNodeLabels: { pool: 'apps' } } },
};

const wasWidened: Case = {
  pod: {
    ...matching([archIn('amd64', 'arm64')]),
    annotations: {
      'arch.example/decision': JSON.stringify({
        v: 1,
        outcome: 'placed',
        imagesKey: 'x',
        widened: { nodeSelector: amdLabel },
        added: { terms: [[['kubernetes.io/arch', ['amd64', 'arm64']]]], made: true },
      }),
    },
  },
  amd2: amdLabel,
};

const moved: Cases = {
  'of a kind that nobody knows': {
    pod: { owner: { apiVersion: 'x.example/v1', kind: 'Rollout', name: 'x', uid: 'x', controller: true } },
  },
  'whose ReplicaSet may not be read': {
    before: ({ store }) => void store.fault(/GET .*replicasets/, { status: 403 }),
  },
  'whose container does not run again after it had failed': {
    pod: { status: { state: { terminated: { reason: 'Error', exitCode: 255 } }, restartCount: 2 } },
  },
  'that cannot be pulled there': {
    pod: { phase: 'Pending', imageID: '', status: { state: { waiting: { reason: 'ImagePullBackOff' } } } },
  },
  'without any status': { pod: { phase: 'Pending', status: { state: {} }, imageID: '' } },
  'that pulled what the tag was before, which lacks it too': {
    pod: { imageID: `docker-pullable://${cPulled}` },
    facts: otherPulled('amd64'),
  },
  'that was widened to the architecture, under keep': {
    ...wasWidened,
    configuration: { constraints: 'keep' },
  },
  'that was widened to the architecture, under widen': {
    ...wasWidened,
    configuration: { constraints: 'widen' },
  },
  'that allows both by itself': { pod: matching([archIn('amd64', 'arm64')]), amd2: amdLabel },
  'that chooses nodes one of which can run it': { ...selecting({ disk: 'ssd' }), amd2: { disk: 'ssd' } },
  'that requires what the other node has, in one of its terms': {
    pod: matching(gpu, [
      isIn('disk', 'ssd', 'nvme'),
      { key: 'old', operator: 'DoesNotExist' },
      notIn('zone', 'a'),
      { key: 'cores', operator: 'Gt', values: ['3'] },
    ]),
    amd2: { disk: 'nvme', zone: 'b', cores: '4' },
  },
  'whose successor has to have a node with the labels of its architecture': {
    configuration: requireLabels,
    amd2: { ...amdLabel, pool: 'apps' },
  },
  'that hands on a label which the other node has, in one of the terms that it requires': {
    pod: { labels: { zone: 'a' }, ...matching(gpu, [exists('disk')]) },
    configuration: { matchNodeLabels: ['zone'] },
    amd2: { ...amdLabel, zone: 'a', disk: 'ssd' },
  },
  'where the other node has the taint of its architecture': {
    taint: { key: 'kubernetes.io/arch', value: 'amd64', effect: 'NoSchedule' },
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
  'whose image is not known': { facts: {} },
  'whose registry fails': { facts: { 'app:1': failed('unavailable') } },
  'with old facts': { facts: { 'app:1': facts('amd64', { stale: true }) } },
  'with an artifact': { facts: { 'app:1': facts('') } },
  'whose container runs, as under an emulator': { pod: { status: running } },
  'whose container runs again after it had failed, as under an emulator': {
    pod: {
      status: {
        state: { running: {} },
        lastState: { terminated: { reason: 'Error', exitCode: 1 } },
        restartCount: 2,
      },
    },
  },
  'whose container is ready, another is not': { pod: { status: { ...running, ready: true } } },
  'whose container ended well': {
    pod: { status: { state: { terminated: { reason: 'Completed', exitCode: 0 } } } },
  },
  'that pulled what the tag was before, which has both': {
    pod: { imageID: cPulled },
    facts: otherPulled('amd64 arm64'),
  },
  'that pulled something of which nothing is known': { pod: { imageID: cPulled } },
  'whose image was imported': { pod: { imageID: digest('c') } },
  'under misplacedPods = off': { configuration: { misplacedPods: 'off' } },
  'on a node that is not known': { pod: { node: 'gone' } },
};

const disabled = { 'arch.example/placement': 'disabled' };
/** A person chose where it is: it is not counted either. */
const chosen: Cases = {
  'disabled by label': { pod: { labels: disabled } },
  'disabled by annotation': { pod: { annotations: disabled } },
  'in an excluded namespace': { configuration: { excludedNamespaces: ['shop'] } },
  'in a disabled namespace': {
    before: ({ store }) => void store.put('/api/v1/namespaces/shop', { metadata: { labels: disabled } }),
  },
  'that selects the architecture': selecting({ 'kubernetes.io/arch': 'arm64' }),
  'that requires the architecture': { pod: matching([archIn('arm64')]) },
};

/** It stays, and an event says so once. */
const withoutNode: Cases = {
  'that chooses nodes none of which can run it': selecting({ disk: 'ssd' }),
  'that requires what the other node has not': { pod: matching([isIn('disk', 'ssd', 'nvme')], gpu) },
  'whose successor has to have a node with the labels of its architecture, which none has': {
    configuration: requireLabels,
    before: ({ store }) =>
      putNode(store, 'arm-2', 'arm64', [], { 'kubernetes.io/arch': 'arm64', pool: 'apps' }),
  },
  'that hands on a label which the other node has not': {
    pod: { labels: { zone: 'a' } },
    configuration: { matchNodeLabels: ['zone'] },
  },
  'where the other node has another operating system': {
    before: ({ store }) => putNode(store, 'amd-1', 'amd64', [], {}, 'windows'),
  },
  'where the other node is cordoned': {
    taint: { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' },
  },
  'where the other node has a taint that it does not tolerate': {
    taint: { key: 'gpu', effect: 'NoSchedule' },
  },
  'where the other node is not ready': {
    before: ({ store }) =>
      void store.put('/api/v1/nodes/amd-1', {
        status: { nodeInfo: { architecture: 'amd64', operatingSystem: 'linux' } },
      }),
  },
};

/** The pod after the reconciliation that may move it. */
async function reconciled(t: Test, { pod, configuration, facts: given, amd2, taint, before }: Case) {
  const world = await startWorld(t, { configuration, ...(given && { facts: given }) });
  const { store, leading } = world;
  putPod(store, 'web-a', pod);
  if (amd2) putNode(store, 'amd-2', 'amd64', [], amd2);
  if (taint) putNode(store, 'amd-1', 'amd64', [taint]);
  before?.(world);
  await world.settled();
  await store.until(() => leading.caches.namespaces.size === store.list('/api/v1/namespaces').length);
  await world.afterGrace();
  return world;
}

for (const [name, given] of Object.entries(moved)) {
  void t.test(`a pod ${name}: moved`, async (t) => {
    const world = await reconciled(t, given);
    t.same(world.pods(), []);
    t.equal(world.store.asked(evictions).length, 1);
  });
}

for (const [name, given] of Object.entries({ ...stays, ...chosen })) {
  void t.test(`a pod ${name}: stays`, async (t) => {
    const world = await reconciled(t, given);
    t.same(world.pods(), ['web-a']);
    t.same(world.store.writes(), []);
    t.same(world.events, []);
    if (name in chosen) t.equal(await world.series('archwright_misplaced_pods'), 0, 'and nobody is called');
  });
}

const told: readonly (readonly [name: string, given: Case, event: RegExp])[] = [
  ...Object.entries(withoutNode).map(([name, given]) => [name, given, /no node/] as const),
  [
    'where no node of the other architecture is',
    { before: ({ store }) => store.remove('/api/v1/nodes/amd-1') },
    /no node that its successor could use has one of amd64/,
  ],
  [
    'whose image runs on no schedulable architecture',
    { configuration: { schedulableArchitectures: ['arm64'] } },
    /no architecture/,
  ],
  ['under misplacedPods = event', { configuration: { misplacedPods: 'event' } }, /would be evicted/],
];
for (const [name, given, event] of told) {
  void t.test(`a pod ${name}: stays, with an event`, async (t) => {
    const world = await reconciled(t, given);
    t.same(world.pods(), ['web-a']);
    t.same(world.store.writes(), []);
    t.match(world.events[0]?.message, event);
    const count = world.events.length;
    await world.after(20 * 60_000);
    t.equal(world.events.length, count, 'once');
  });
}

for (const [what, selector, moved] of [
  ['leaves the namespace out', { matchLabels: { archwright: 'on' } }, false],
  ['selects the namespace', { matchLabels: { team: 'a' } }, true],
] as const) {
  void t.test(`a pod where the webhook configuration ${what}: ${moved ? 'moved' : 'stays'}`, async (t) => {
    const world = await startWorld(t, { configuration: { webhooksFile: webhooksFile(t, selector) } });
    const { store, leading } = world;
    store.put('/api/v1/namespaces/shop', { metadata: { labels: { team: 'a' } } });
    putPod(store, 'web-a');
    await store.until(() => leading.caches.namespaces.size === 1);
    await world.afterGrace();
    t.same(world.pods(), moved ? [] : ['web-a']);
    if (moved) return;
    t.same(world.events, [], 'whoever left it out need not hear of it');
    t.equal(await world.series('archwright_misplaced_pods'), 0);
    store.put('/api/v1/namespaces/shop', { metadata: { labels: { archwright: 'on' } } });
    await store.until(() => 'archwright' in (leading.caches.namespaces.get('', 'shop')?.labels ?? {}));
    await world.after(60_000);
    t.same(world.pods(), [], 'it is left in now');
  });
}

void t.test('becomes ready between two looks', async (t) => {
  const world = await startWorld(t, { pods: ['web-a'] });
  const { store } = world;
  store.fault(`GET ${podPath('web-a')}`, {
    times: 1,
    before: () => void putPod(store, 'web-a', { ready: true }),
  });
  await world.afterGrace();
  t.same(world.pods(), ['web-a']);
  t.same(store.writes(), []);
});

void t.test('becomes ready, or another one, right before the eviction', async (t) => {
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
    t.same(world.pods(), change === 'gone' ? [] : ['web-a'], change);
    t.equal(await world.series('archwright_misplaced_pods_total{outcome="evicted"}'), 0);
  }
});

void t.test('the gauge says what is misplaced now', async (t) => {
  const world = await startWorld(t, { configuration: { misplacedPods: 'event' } });
  putPod(world.store, 'web-a');
  await world.afterGrace();
  t.equal(await world.series('archwright_misplaced_pods'), 1);
  world.store.remove(podPath('web-a'));
  await world.after(0);
  t.equal(await world.series('archwright_misplaced_pods'), 0);
});

void t.test('a pod that was not ready for a moment is not looked at', async (t) => {
  const world = await startWorld(t, { pods: ['web-a'] });
  await world.after(0);
  await world.clock.advance(20_000);
  putPod(world.store, 'web-a', { ready: true });
  await world.after(0);
  putPod(world.store, 'web-a');
  await world.after(0);
  await world.after(20_000);
  t.same(world.pods(), ['web-a']);
  await world.after(11_000);
  t.same(world.pods(), []);
});
