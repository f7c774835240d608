/** Which pods are moved, and which are not, each for its reason. */
import { join } from 'node:path';
import t from 'tap';
import type { Configuration } from '../../../src/policy/configuration/configuration.ts';
import type { NodeSelectorRequirement, Taint } from '../../../src/kube/api/objects.ts';
import { facts, failed, requiring } from '../../support/placement-input.ts';
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
  readonly name: string;
  readonly pod?: PodOptions;
  readonly configuration?: Partial<Configuration>;
  readonly facts?: typeof known;
  /** Labels of a second node of amd64. */
  readonly amd2?: Readonly<Record<string, string>>;
  /** Of the node of amd64. */
  readonly taint?: Taint;
  readonly before?: (world: World) => void;
  readonly moved?: boolean;
  /** Where it is is somebody's choice. */
  readonly alone?: boolean;
  readonly event?: RegExp;
}

const running = { state: { running: {} }, restartCount: 0 };
const spec = (more: object): PodOptions => ({ spec: more });
const selecting = (nodeSelector: object): PodOptions => spec({ nodeSelector });
const otherPulled = (platforms: string): typeof known => ({
  ...known,
  [`registry.example/app@${digest('c')}`]: facts(platforms, { digest: digest('c') }),
});
const matching = (...terms: readonly NodeSelectorRequirement[][]): PodOptions =>
  spec(requiring(terms.map((matchExpressions) => ({ matchExpressions }))));
const affinity = (values: string[]): PodOptions =>
  matching([{ key: 'kubernetes.io/arch', operator: 'In', values }]);

const diskExists = { key: 'disk', operator: 'Exists' };
const requireLabels: Partial<Configuration> = {
  architectures: { amd64: { taintsToTolerate: [], requireNodeLabels: { pool: 'apps' } } },
};

const cases: readonly Case[] = [
  { name: 'ready', pod: { ready: true } },
  { name: 'on a node that can run it', pod: { node: 'amd-1' } },
  { name: 'with an image that has both', pod: { image: 'both:1' } },
  { name: 'without an owner', pod: { owner: null } },
  { name: 'static', pod: { annotations: { 'kubernetes.io/config.mirror': 'x' } } },
  { name: 'owned, but not controlled', pod: { owner: { apiVersion: 'v1', kind: 'X', name: 'x', uid: 'x' } } },
  {
    name: 'of a kind that nobody knows',
    pod: { owner: { apiVersion: 'x.example/v1', kind: 'Rollout', name: 'x', uid: 'x', controller: true } },
    moved: true,
  },
  {
    name: 'whose ReplicaSet is gone',
    before: ({ store }) => store.remove('/apis/apps/v1/namespaces/shop/replicasets/web-1'),
  },
  {
    name: 'whose ReplicaSet may not be read',
    before: ({ store }) => void store.fault(/GET .*replicasets/, { status: 403 }),
    moved: true,
  },
  { name: 'ended', pod: { phase: 'Failed' } },
  { name: 'created a moment ago', pod: { createdAt: serverStart + 10_000 } },
  { name: 'never pulled', pod: { pullPolicy: 'Never' } },
  { name: 'whose image is not known', facts: {} },
  { name: 'whose registry fails', facts: { 'app:1': failed('unavailable') } },
  { name: 'with old facts', facts: { 'app:1': facts('amd64', { stale: true }) } },
  { name: 'with an artifact', facts: { 'app:1': facts('') } },
  { name: 'whose container runs, as under an emulator', pod: { status: running } },
  {
    name: 'whose container runs again after it had failed, as under an emulator',
    pod: {
      status: {
        state: { running: {} },
        lastState: { terminated: { reason: 'Error', exitCode: 1 } },
        restartCount: 2,
      },
    },
  },
  {
    name: 'whose container does not run again after it had failed',
    pod: { status: { state: { terminated: { reason: 'Error', exitCode: 255 } }, restartCount: 2 } },
    moved: true,
  },
  { name: 'whose container is ready, another is not', pod: { status: { ...running, ready: true } } },
  {
    name: 'whose container ended well',
    pod: { status: { state: { terminated: { reason: 'Completed', exitCode: 0 } } } },
  },
  {
    name: 'that cannot be pulled there',
    pod: { phase: 'Pending', imageID: '', status: { state: { waiting: { reason: 'ImagePullBackOff' } } } },
    moved: true,
  },
  { name: 'without any status', pod: { phase: 'Pending', status: { state: {} }, imageID: '' }, moved: true },
  {
    name: 'that pulled what the tag was before, which has both',
    pod: { imageID: `registry.example/app@${digest('c')}` },
    facts: otherPulled('amd64 arm64'),
  },
  {
    name: 'that pulled what the tag was before, which lacks it too',
    pod: { imageID: `docker-pullable://registry.example/app@${digest('c')}` },
    facts: otherPulled('amd64'),
    moved: true,
  },
  {
    name: 'that pulled something of which nothing is known',
    pod: { imageID: `registry.example/app@${digest('c')}` },
  },
  { name: 'whose image was imported', pod: { imageID: digest('c') } },
  { name: 'disabled by label', pod: { labels: { 'arch.example/placement': 'disabled' } }, alone: true },
  {
    name: 'disabled by annotation',
    pod: { annotations: { 'arch.example/placement': 'disabled' } },
    alone: true,
  },
  { name: 'in an excluded namespace', configuration: { excludedNamespaces: ['shop'] }, alone: true },
  {
    name: 'in a disabled namespace',
    alone: true,
    before: ({ store }) =>
      void store.put('/api/v1/namespaces/shop', {
        metadata: { labels: { 'arch.example/placement': 'disabled' } },
      }),
  },
  {
    name: 'that selects the architecture',
    pod: selecting({ 'kubernetes.io/arch': 'arm64' }),
    alone: true,
  },
  { name: 'that requires the architecture', pod: affinity(['arm64']), alone: true },
  ...(['keep', 'widen'] as const).map((constraints): Case => ({
    name: `that was widened to the architecture, under ${constraints}`,
    pod: {
      ...affinity(['amd64', 'arm64']),
      annotations: {
        'arch.example/decision': JSON.stringify({
          v: 1,
          outcome: 'placed',
          imagesKey: 'x',
          widened: { nodeSelector: { 'kubernetes.io/arch': 'amd64' } },
          added: { terms: [[['kubernetes.io/arch', ['amd64', 'arm64']]]], made: true },
        }),
      },
    },
    configuration: { constraints },
    amd2: { 'kubernetes.io/arch': 'amd64' },
    moved: true,
  })),
  {
    name: 'that allows both by itself',
    pod: affinity(['amd64', 'arm64']),
    amd2: { 'kubernetes.io/arch': 'amd64' },
    moved: true,
  },
  {
    name: 'that chooses nodes none of which can run it',
    pod: selecting({ disk: 'ssd' }),
    event: /no node/,
  },
  {
    name: 'that chooses nodes one of which can run it',
    pod: selecting({ disk: 'ssd' }),
    amd2: { disk: 'ssd' },
    moved: true,
  },
  {
    name: 'that requires what the other node has not',
    pod: matching(
      [{ key: 'disk', operator: 'In', values: ['ssd', 'nvme'] }],
      [{ key: 'gpu', operator: 'Exists' }],
    ),
    event: /no node/,
  },
  {
    name: 'that requires what the other node has, in one of its terms',
    pod: matching(
      [{ key: 'gpu', operator: 'Exists' }],
      [
        { key: 'disk', operator: 'In', values: ['ssd', 'nvme'] },
        { key: 'old', operator: 'DoesNotExist' },
        { key: 'zone', operator: 'NotIn', values: ['a'] },
        { key: 'cores', operator: 'Gt', values: ['3'] },
      ],
    ),
    amd2: { disk: 'nvme', zone: 'b', cores: '4' },
    moved: true,
  },
  {
    name: 'whose successor has to have a node with the labels of its architecture, which none has',
    configuration: requireLabels,
    before: ({ store }) =>
      putNode(store, 'arm-2', 'arm64', [], { 'kubernetes.io/arch': 'arm64', pool: 'apps' }),
    event: /no node/,
  },
  {
    name: 'whose successor has to have a node with the labels of its architecture',
    configuration: requireLabels,
    amd2: { 'kubernetes.io/arch': 'amd64', pool: 'apps' },
    moved: true,
  },
  {
    name: 'that hands on a label which the other node has not',
    pod: { labels: { zone: 'a' } },
    configuration: { matchNodeLabels: ['zone'] },
    event: /no node/,
  },
  {
    name: 'that hands on a label which the other node has, in one of the terms that it requires',
    pod: { labels: { zone: 'a' }, ...matching([{ key: 'gpu', operator: 'Exists' }], [diskExists]) },
    configuration: { matchNodeLabels: ['zone'] },
    amd2: { 'kubernetes.io/arch': 'amd64', zone: 'a', disk: 'ssd' },
    moved: true,
  },
  {
    name: 'where no node of the other architecture is',
    before: ({ store }) => store.remove('/api/v1/nodes/amd-1'),
    event: /no node that its successor could use has one of amd64/,
  },
  {
    name: 'where the other node has another operating system',
    before: ({ store }) => putNode(store, 'amd-1', 'amd64', [], {}, 'windows'),
    event: /no node/,
  },
  {
    name: 'where the other node is cordoned',
    taint: { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' },
    event: /no node/,
  },
  {
    name: 'where the other node has a taint that it does not tolerate',
    taint: { key: 'gpu', effect: 'NoSchedule' },
    event: /no node/,
  },
  {
    name: 'where the other node has the taint of its architecture',
    taint: { key: 'kubernetes.io/arch', value: 'amd64', effect: 'NoSchedule' },
    moved: true,
  },
  {
    name: 'where the other node is not ready',
    before: ({ store }) =>
      void store.put('/api/v1/nodes/amd-1', {
        status: { nodeInfo: { architecture: 'amd64', operatingSystem: 'linux' } },
      }),
    event: /no node/,
  },
  {
    name: 'whose image runs on no schedulable architecture',
    configuration: { schedulableArchitectures: ['arm64'] },
    event: /no architecture/,
  },
  {
    name: 'under misplacedPods = event',
    configuration: { misplacedPods: 'event' },
    event: /would be evicted/,
  },
  { name: 'under misplacedPods = off', configuration: { misplacedPods: 'off' } },
  { name: 'on a node that is not known', pod: { node: 'gone' } },
];

for (const each of cases) {
  const { name, pod, configuration, facts: given, amd2, taint, before, moved = false, alone, event } = each;
  void t.test(`a pod ${name}: ${moved ? 'moved' : 'stays'}`, async (t) => {
    const world = await startWorld(t, { configuration, ...(given && { facts: given }) });
    putPod(world.store, 'web-a', pod);
    if (amd2) putNode(world.store, 'amd-2', 'amd64', [], amd2);
    if (taint) putNode(world.store, 'amd-1', 'amd64', [taint]);
    before?.(world);
    await world.settled();
    await world.store.until(
      () => world.leading.caches.namespaces.size === world.store.list('/api/v1/namespaces').length,
    );
    await world.afterGrace();
    t.same(world.pods(), moved ? [] : ['web-a']);
    if (moved) t.equal(world.store.asked(evictions).length, 1);
    else t.same(world.store.writes(), []);
    if (!moved && event === undefined) {
      t.same(world.events, []);
      if (alone) t.equal(await world.series('archwright_misplaced_pods'), 0, 'and nobody is called for it');
    }
    if (event) {
      t.match(world.events[0]?.message, event);
      const told = world.events.length;
      await world.after(20 * 60_000);
      t.equal(world.events.length, told, 'once');
    }
  });
}

const webhooksOf = (namespaceSelector: object): string =>
  JSON.stringify({
    webhooks: [
      {
        name: 'pods.arch.example',
        clientConfig: { url: 'https://webhook.example/' },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
        namespaceSelector,
      },
    ],
  });

for (const [what, selector, moved] of [
  ['leaves the namespace out', { matchLabels: { archwright: 'on' } }, false],
  ['selects the namespace', { matchLabels: { team: 'a' } }, true],
] as const) {
  void t.test(`a pod where the webhook configuration ${what}: ${moved ? 'moved' : 'stays'}`, async (t) => {
    const webhooksFile = join(t.testdir({ 'webhooks.yaml': webhooksOf(selector) }), 'webhooks.yaml');
    const world = await startWorld(t, { configuration: { webhooksFile } });
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
