/** Rounds of a leader: the order of tolerations and taints, what is left alone, and what is taken off again. */
import { join } from 'node:path';
import t from 'tap';
import { taints } from '../../../src/controller/taints/taints.ts';
import type { NodeSelectorRequirement } from '../../../src/kube/api/objects.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { requiring } from '../../support/placement-input.ts';
import {
  annotation,
  key,
  putDaemonSet,
  putNode,
  putPod,
  startWorld,
  taintOf,
  tolerationOf,
  type PodOptions,
} from './setup.ts';

const patches = /^PATCH /;

void t.test('pods first, then nodes; then nothing more', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  putNode(store, 'arm-2', 'arm64', { taints: [{ key: 'dedicated', value: 'a', effect: 'NoSchedule' }] });
  putNode(store, 'amd-1', 'amd64');
  for (const name of ['a', 'b', 'c']) putPod(store, name, name === 'c' ? 'arm-2' : 'arm-1');
  putPod(store, 'elsewhere', 'amd-1');
  await world.reconcileNodes();
  t.same(store.asked(patches), [], 'nodes wait for the pods');
  t.equal(await world.series('archwright_taint_nodes{state="waiting"}'), 2);

  await world.reconcilePods();
  const paths = store.asked(patches).map(({ path }) => path);
  t.same(
    new Set(paths.slice(0, 3)),
    new Set(['a', 'b', 'c'].map((name) => `/api/v1/namespaces/shop/pods/${name}`)),
  );
  t.same(new Set(paths.slice(3)), new Set(['/api/v1/nodes/arm-1', '/api/v1/nodes/arm-2']));
  for (const name of ['a', 'b', 'c']) t.same(world.tolerations(name)[1], tolerationOf('arm64'));
  t.equal(world.tolerations('elsewhere').length, 1);
  t.same(world.taints('arm-1'), [taintOf('arm64')]);
  t.match(world.taints('arm-2'), [{ key: 'dedicated' }, taintOf('arm64')]);
  t.same(world.taints('amd-1'), []);
  t.equal(world.record('arm-1'), key);
  t.same(world.steps.slice(0, 4), ['taints/pod', 'taints/pod', 'taints/pod', 'taints/pods-done']);

  await world.settled();
  const before = store.writes().length;
  await world.reconcileNodes();
  await world.reconcilePods();
  t.equal(store.writes().length, before);
  t.equal(await world.series('archwright_taint_nodes{state="tainted"}'), 2);
  t.equal(await world.series('archwright_taint_pods_waiting'), 0);
});

void t.test('a new node of an established architecture gets its taint before any pod', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  putNode(store, 'arm-1', 'arm64', { taints: [taintOf('arm64')], annotations: { [annotation]: key } });
  putNode(store, 'arm-2', 'arm64');
  putPod(store, 'late', 'arm-2');
  await world.reconcileNodes();
  t.same(world.taints('arm-2'), [taintOf('arm64')]);
  t.equal(world.tolerations('late').length, 1);
  await world.reconcilePods();
  t.equal(world.tolerations('late').length, 2);
});

void t.test('a taint that others set does not mean that the pods had their turn', async (t) => {
  const world = await startWorld(t, { configuration: { taintKey: 'kubernetes.io/arch' } });
  putNode(world.store, 'arm-1', 'arm64', { taints: [taintOf('arm64', 'kubernetes.io/arch')] });
  putNode(world.store, 'arm-2', 'arm64');
  await world.reconcileNodes();
  t.same(world.taints('arm-2'), []);
  await world.reconcilePods();
  t.same(world.taints('arm-2'), [taintOf('arm64', 'kubernetes.io/arch')]);
  t.equal(world.record('arm-1'), undefined, 'it stays theirs');
  world.configure({ taintArchitectures: [] });
  await world.reconcileNodes();
  t.same(world.taints('arm-1'), [taintOf('arm64', 'kubernetes.io/arch')]);
  t.same(world.taints('arm-2'), []);
});

void t.test('every architecture; a control plane stays open', async (t) => {
  const world = await startWorld(t, { configuration: { taintArchitectures: ['*'] } });
  const { store } = world;
  const role = { key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' };
  putNode(store, 'amd', 'amd64', { taints: [taintOf('arm64')] });
  putNode(store, 's', 's390x');
  putNode(store, 'cp', 'amd64', { taints: [role] });
  await world.reconcilePods();
  t.same(world.taints('amd'), [taintOf('amd64')], 'the wrong value is replaced');
  t.same(world.taints('s'), [taintOf('s390x')]);
  t.same(world.taints('cp'), [role]);
});

const pods: readonly { name: string; options: PodOptions; gets: boolean }[] = [
  { name: 'of a ReplicaSet', options: {}, gets: true },
  { name: 'of a Job', options: { owner: 'Job' }, gets: true },
  { name: 'pending on its node', options: { phase: 'Pending', ready: false }, gets: true },
  { name: 'without any toleration', options: { tolerations: [] }, gets: true },
  {
    name: 'with that of another architecture',
    options: { tolerations: [tolerationOf('amd64')] },
    gets: true,
  },
  { name: 'of a DaemonSet', options: { owner: 'DaemonSet', ready: false }, gets: false },
  { name: 'ended', options: { phase: 'Succeeded' }, gets: false },
  { name: 'failed', options: { phase: 'Failed' }, gets: false },
  {
    name: 'static',
    options: { annotations: { 'kubernetes.io/config.mirror': 'x' }, owner: 'Node' },
    gets: false,
  },
  { name: 'disabled by label', options: { labels: { 'arch.example/placement': 'disabled' } }, gets: false },
  { name: 'in an excluded namespace', options: { namespace: 'kube-system' }, gets: false },
  { name: 'in our own namespace', options: { namespace: 'archwright' }, gets: false },
  { name: 'in a disabled namespace', options: { namespace: 'closed' }, gets: false },
  { name: 'tolerating it', options: { tolerations: [tolerationOf('arm64')] }, gets: false },
  { name: 'tolerating everything', options: { tolerations: [{ operator: 'Exists' }] }, gets: false },
  { name: 'tolerating the key', options: { tolerations: [{ key, operator: 'Exists' }] }, gets: false },
];
for (const { name, options, gets } of pods) {
  void t.test(`a pod ${name}: ${gets ? 'gets the toleration' : 'is left as it is'}`, async (t) => {
    const world = await startWorld(t);
    const { store } = world;
    store.put('/api/v1/namespaces/closed', {
      metadata: { name: 'closed', labels: { 'arch.example/placement': 'disabled' } },
    });
    putNode(store, 'arm-1', 'arm64');
    putNode(store, 'amd-1', 'amd64');
    putPod(store, 'p', 'arm-1', options);
    await store.until(() => world.leading.caches.namespaces.size === 1);
    await world.settled();
    const before = world.tolerations('p', options.namespace).length;
    await world.reconcilePods();
    t.equal(world.tolerations('p', options.namespace).length, before + (gets ? 1 : 0));
    t.same(world.taints('arm-1'), [taintOf('arm64')]);
  });
}

void t.test('a DaemonSet that would lose the node holds the taint back until it tolerates it', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  putPod(store, 'log', 'arm-1', { owner: 'DaemonSet' });
  putDaemonSet(store, 'log', []);
  await world.reconcilePods();
  await world.reconcilePods();
  t.same(world.taints('arm-1'), []);
  t.match(world.events, [
    {
      type: 'Warning',
      reason: 'TaintHeldBack',
      about: { kind: 'DaemonSet', namespace: 'shop', name: 'of-log' },
    },
  ]);
  t.equal(world.events.length, 1, 'told once');
  t.match(world.events[0]?.message, /kubectl rollout restart/);
  t.equal(await world.series('archwright_taint_blockers{reason="daemonsets"}'), 1);

  putDaemonSet(store, 'log', [{ operator: 'Exists' }]);
  await world.reconcilePods();
  t.same(world.taints('arm-1'), [taintOf('arm64')]);
  t.equal(await world.series('archwright_taint_blockers{reason="daemonsets"}'), 0);
});

const daemonSets: readonly {
  name: string;
  options: PodOptions;
  template?: readonly object[];
  node?: string;
}[] = [
  { name: 'whose pod is not ready there', options: { ready: false }, template: [] },
  { name: 'that is gone', options: {} },
  { name: 'whose pods tolerate it', options: { tolerations: [tolerationOf('arm64')] }, template: [] },
  { name: 'on another architecture', options: {}, template: [], node: 'amd-1' },
];
for (const { name, options, template, node = 'arm-1' } of daemonSets) {
  void t.test(`a DaemonSet ${name} holds nothing back`, async (t) => {
    const world = await startWorld(t);
    const { store } = world;
    putNode(store, 'amd-1', 'amd64');
    putPod(store, 'log', node, { ...options, owner: 'DaemonSet' });
    if (template) putDaemonSet(store, 'log', template);
    await world.reconcilePods();
    t.same(world.taints('arm-1'), [taintOf('arm64')]);
  });
}

for (const apiVersion of ['apps.kruise.io/v1alpha1', 'apps/v1']) {
  void t.test(`a DaemonSet of ${apiVersion} that may not be read is judged by its pods`, async (t) => {
    const world = await startWorld(t, { configuration: { taintArchitectures: ['arm64', 's390x'] } });
    const { store } = world;
    putNode(store, 's-1', 's390x');
    putPod(store, 'log', 'arm-1', { owner: 'DaemonSet', apiVersion });
    store.fault(/daemonsets/, { status: 403 });
    await world.reconcilePods();
    t.same(world.taints('arm-1'), [], 'held back');
    t.same(world.taints('s-1'), [taintOf('s390x')], 'other architectures are not');
    t.match(world.events, [{ reason: 'TaintHeldBack', about: { apiVersion, kind: 'DaemonSet' } }]);
    t.equal(/rollout restart/.test(world.events[0]?.message ?? ''), apiVersion === 'apps/v1');

    putPod(store, 'log', 'arm-1', { owner: 'DaemonSet', apiVersion, tolerations: [tolerationOf('arm64')] });
    await world.reconcilePods();
    t.same(world.taints('arm-1'), [taintOf('arm64')]);
  });
}

void t.test('a skipped pod keeps one node open', async (t) => {
  const world = await startWorld(t, { configuration: { taintArchitectures: ['*'] } });
  const { store } = world;
  putNode(store, 'amd-1', 'amd64');
  putPod(store, 'dns', 'arm-1', { namespace: 'kube-system' });
  await world.reconcilePods();
  t.same(world.taints('arm-1'), [], 'no node would be left for its successor');
  t.same(world.taints('amd-1'), [taintOf('amd64')], 'it does not run there');
  t.match(world.events, [{ reason: 'TaintHeldBack', about: { kind: 'Pod', name: 'dns' } }]);
  t.equal(await world.series('archwright_taint_blockers{reason="no-other-node"}'), 1);

  putNode(store, 'cp', 'amd64', {
    taints: [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }],
  });
  await world.reconcilePods();
  t.same(world.taints('arm-1'), [], 'it does not tolerate that one');
  putNode(store, 's', 's390x', {
    taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }],
  });
  world.configure({ taintArchitectures: ['arm64'] });
  await world.reconcileNodes();
  await world.reconcilePods();
  t.same(world.taints('arm-1'), [taintOf('arm64')], 'amd64 is open again');
  t.same(world.taints('amd-1'), []);
});

void t.test('a skipped pod that needs no other node', async (t) => {
  const unready = { namespace: 'kube-system', ready: false };
  const tolerant = { namespace: 'kube-system', tolerations: [{ operator: 'Exists' }] };
  for (const options of [unready, tolerant]) {
    const world = await startWorld(t, { configuration: { taintArchitectures: ['*'] } });
    putPod(world.store, 'dns', 'arm-1', options);
    await world.reconcilePods();
    t.same(world.taints('arm-1'), [taintOf('arm64')]);
  }
});

const matching = (...terms: readonly NodeSelectorRequirement[][]): object =>
  requiring(...terms.map((matchExpressions) => ({ matchExpressions })));
const choosing = (labels: Record<string, string>): object => ({ nodeSelector: labels });

const choices: readonly { name: string; spec: object; namespace?: string; holds: boolean }[] = [
  { name: 'the architecture', spec: choosing({ 'kubernetes.io/arch': 'arm64' }), holds: true },
  { name: 'what the other node has', spec: choosing({ zone: 'a' }), holds: false },
  {
    name: 'what the other node has, and the architecture',
    spec: choosing({ zone: 'a', 'kubernetes.io/arch': 'arm64' }),
    holds: true,
  },
  {
    name: 'nodes by affinity, none of which is another one',
    spec: matching(
      [{ key: 'zone', operator: 'In', values: ['b', 'c'] }],
      [{ key: 'kubernetes.io/arch', operator: 'NotIn', values: ['amd64'] }],
    ),
    holds: true,
  },
  {
    name: 'nodes by affinity, one of which is another one',
    spec: matching([{ key: 'gpu', operator: 'Exists' }], [{ key: 'gpu', operator: 'DoesNotExist' }]),
    holds: false,
  },
  {
    name: 'nodes by affinity, one of which is another one, but not by its selector',
    spec: { ...choosing({ zone: 'b' }), ...matching([{ key: 'gpu', operator: 'DoesNotExist' }]) },
    holds: true,
  },
  {
    name: 'nodes by a number, which none of them reaches',
    spec: matching([{ key: 'cores', operator: 'Gt', values: ['100'] }]),
    holds: true,
  },
  {
    name: 'the control plane, which the webhook leaves alone everywhere',
    spec: choosing({ 'node-role.kubernetes.io/control-plane': 'true' }),
    namespace: 'shop',
    holds: true,
  },
  {
    name: 'nothing, with images that are never pulled, which the webhook leaves alone too',
    spec: { containers: [{ name: 'app', image: 'app:1', imagePullPolicy: 'Never' }] },
    namespace: 'shop',
    holds: false,
  },
];
for (const { name, spec, namespace = 'kube-system', holds } of choices) {
  void t.test(`a skipped pod that chooses ${name}`, async (t) => {
    const world = await startWorld(t);
    const { store } = world;
    putNode(store, 'arm-1', 'arm64', { labels: { 'node-role.kubernetes.io/control-plane': 'true' } });
    putNode(store, 'amd-1', 'amd64', { labels: { zone: 'a' } });
    putNode(store, 'amd-2', 'amd64', {
      labels: { zone: 'b' },
      taints: [{ key: 'gpu', effect: 'NoSchedule' }],
    });
    putPod(store, 'dns', 'arm-1', { namespace, spec });
    await world.reconcilePods();
    t.equal(world.tolerations('dns', namespace).length, 1, 'it is left as it is');
    t.same(world.taints('arm-1'), holds ? [] : [taintOf('arm64')]);
    t.equal(await world.series('archwright_taint_blockers{reason="no-other-node"}'), holds ? 1 : 0);
  });
}

void t.test('pods for which the webhook is not called are skipped', async (t) => {
  const webhooks = [
    {
      name: 'pods.arch.example',
      clientConfig: { url: 'https://webhook.example/' },
      rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
      namespaceSelector: { matchLabels: { archwright: 'on' } },
    },
  ];
  const dir = t.testdir({ 'webhooks.yaml': JSON.stringify({ webhooks }) });
  const world = await startWorld(t, {
    configuration: { taintArchitectures: ['*'], webhooksFile: join(dir, 'webhooks.yaml') },
  });
  const { store } = world;
  store.put('/api/v1/namespaces/asked', { metadata: { name: 'asked', labels: { archwright: 'on' } } });
  putNode(store, 'arm-1', 'arm64');
  putNode(store, 'amd-1', 'amd64');
  putPod(store, 'in', 'arm-1', { namespace: 'asked' });
  putPod(store, 'out', 'arm-1');
  await store.until(() => world.leading.caches.namespaces.size === 1);
  await world.reconcilePods();
  t.equal(world.tolerations('in', 'asked').length, 2);
  t.equal(world.tolerations('out').length, 1);
  t.same(world.taints('arm-1'), [], 'the successor of the one would find no node');
  t.same(world.taints('amd-1'), [taintOf('amd64')]);
  t.match(world.events, [{ reason: 'TaintHeldBack', about: { name: 'out' } }]);
});

void t.test('with every architecture, a pod whose image is never pulled keeps one node open', async (t) => {
  const world = await startWorld(t, { configuration: { taintArchitectures: ['*'] } });
  const containers = [{ name: 'app', image: 'app:1', imagePullPolicy: 'Never' }];
  putPod(world.store, 'imported', 'arm-1', { spec: { containers } });
  await world.reconcilePods();
  t.same(world.taints('arm-1'), [], 'its successor would get no toleration');
  t.match(world.events, [{ reason: 'TaintHeldBack', about: { kind: 'Pod', name: 'imported' } }]);
});

void t.test('taken off on demand; another key replaces the old one at one stroke', async (t) => {
  const world = await startWorld(t);
  const foreign = { key: 'dedicated', value: 'a', effect: 'NoSchedule' };
  putNode(world.store, 'arm-1', 'arm64', { taints: [foreign] });
  putPod(world.store, 'a', 'arm-1');
  await world.reconcilePods();
  world.configure({ taintKey: 'example.com/arch' });
  await world.reconcileNodes();
  t.match(
    world.taints('arm-1'),
    [foreign, taintOf('arm64')],
    'the old one stays until the pods had their turn',
  );
  await world.reconcilePods();
  t.same(world.taints('arm-1'), [foreign, taintOf('arm64', 'example.com/arch')]);
  t.equal(world.tolerations('a').length, 3);

  world.configure({ taintArchitectures: [] });
  await world.reconcileNodes();
  t.same(world.taints('arm-1'), [foreign]);
  t.equal(world.record('arm-1'), undefined);
  t.equal(world.steps.at(-1), 'taints/cleared');
});

void t.test('a key with a taint of others replaces ours', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  const theirs = taintOf('arm64', 'kubernetes.io/arch');
  for (const name of ['arm-1', 'arm-2']) putNode(store, name, 'arm64', { taints: [theirs] });
  putPod(store, 'a', 'arm-1');
  await world.reconcilePods();
  t.same(world.taints('arm-1'), [theirs, taintOf('arm64')]);

  world.configure({ taintKey: 'kubernetes.io/arch' });
  await world.reconcileNodes();
  for (const name of ['arm-1', 'arm-2']) {
    t.same(world.taints(name), [theirs], 'pods get no toleration of the old one any more');
    t.equal(world.record(name), undefined, 'and what is there is not ours');
  }
  t.equal(await world.series('archwright_taint_nodes{state="tainted"}'), 2);
  const writes = store.writes().length;
  await world.reconcileNodes();
  t.equal(store.writes().length, writes);
});

void t.test('another key, and its taint is blocked: the old taint does not keep new pods out', async (t) => {
  const world = await startWorld(t, { configuration: { taintArchitectures: ['*'] } });
  const { store } = world;
  putNode(store, 'amd-1', 'amd64');
  putPod(store, 'log', 'arm-1', { owner: 'DaemonSet', tolerations: [tolerationOf('arm64')] });
  putDaemonSet(store, 'log', [tolerationOf('arm64')]);
  await world.reconcilePods();
  t.same(world.taints('arm-1'), [taintOf('arm64')]);

  world.configure({ taintKey: 'example.com/arch' });
  await world.reconcilePods();
  t.same(world.taints('arm-1'), [], 'nobody would tolerate it any more');
  t.equal(world.record('arm-1'), undefined);
  t.same(world.taints('amd-1'), [taintOf('amd64', 'example.com/arch')]);
  t.match(world.events, [{ reason: 'TaintHeldBack', about: { name: 'of-log' } }]);
  const writes = store.writes().length;
  await world.reconcilePods();
  await world.reconcileNodes();
  t.equal(store.writes().length, writes);

  putDaemonSet(store, 'log', [tolerationOf('arm64', 'example.com/arch')]);
  await world.reconcilePods();
  t.same(world.taints('arm-1'), [taintOf('arm64', 'example.com/arch')]);
});

void t.test('switched off while tolerations were given: no taint comes after that', async (t) => {
  const world = await startWorld(t, {
    step: (name) => {
      if (name === 'taints/pods-done') world.configure({ taintArchitectures: [] });
    },
  });
  putNode(world.store, 'arm-1', 'arm64');
  putPod(world.store, 'a', 'arm-1');
  await world.reconcilePods();
  t.same(world.taints('arm-1'), []);
});

void t.test('a kubelet reports before a node has an architecture', async (t) => {
  const world = await startWorld(t, { nodes: {} });
  world.store.put('/api/v1/nodes/n', {
    metadata: { annotations: { [annotation]: key } },
    spec: { taints: [taintOf('arm64')] },
    status: {},
  });
  await world.reconcileNodes();
  await world.reconcilePods();
  t.same(world.store.writes(), []);
});

void t.test('pods that wait are those of every architecture', async (t) => {
  const world = await startWorld(t, { configuration: { taintArchitectures: ['arm64', 'amd64'] } });
  const { store } = world;
  putNode(store, 'amd-1', 'amd64');
  putPod(store, 'refused', 'arm-1');
  putPod(store, 'easy', 'amd-1');
  store.fault(/^PATCH .*pods.refused$/, { status: 403 });
  await world.reconcilePods();
  t.equal(world.tolerations('easy').length, 2);
  t.equal(await world.series('archwright_taint_pods_waiting'), 1);
  await world.reconcilePods();
  t.equal(await world.series('archwright_taint_pods_waiting'), 1);
  world.configure({ taintArchitectures: ['amd64'] });
  await world.reconcilePods();
  t.equal(await world.series('archwright_taint_pods_waiting'), 0);
});

void t.test('back-off, new nodes at once, a regular look at everything, the end', async (t) => {
  const clock = createFakeClock(() => 1);
  const world = await startWorld(t, { clock });
  const { store, leading } = world;
  await world.settled();
  const down = store.fault(/^GET \/api\/v1\/nodes\/./, { status: 503 });
  const done = taints(leading);
  await store.until(() => world.lines.some((line) => line.includes('trying again')));
  down();
  await clock.advance(249);
  t.same(world.taints('arm-1'), []);
  await clock.advance(1);
  await store.until(() => world.taints('arm-1').length === 1, 'the first taint');

  putNode(store, 'arm-2', 'arm64');
  await store.until(() => world.taints('arm-2').length === 1, 'the taint of a new node, at once');
  store.put('/api/v1/nodes/arm-1', {
    spec: { taints: [] },
    metadata: { annotations: { [annotation]: key } },
    status: { nodeInfo: { architecture: 'arm64' } },
  });
  await store.until(() => world.taints('arm-1').length === 1, 'the taint that a person removed');

  world.configure({ taintArchitectures: [] });
  await clock.advance(10_000);
  await store.until(() => world.taints('arm-1').length + world.taints('arm-2').length === 0, 'no taint');
  world.depose();
  await done;
  t.equal(clock.pending, 0);
});
