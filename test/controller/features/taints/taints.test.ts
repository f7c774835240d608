/** The order of tolerations and taints, what is never changed, and what is removed again. */
import { ownNames } from '../../../../src/names/keys.ts';
import t from 'tap';
import { onArch } from '../../../support/placement-input.ts';
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
import { like } from '../../../support/like.ts';

const controlPlane = { key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' };
const everyArchitecture = { configuration: { taintArchitectures: ['*'] } };

t.test('a new node of an established architecture gets its taint before any pod', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  putNode(store, 'arm-1', 'arm64', { taints: [taintOf('arm64')], annotations: { [annotation]: key } });
  putNode(store, 'arm-2', 'arm64');
  putPod(store, 'late', 'arm-2');
  await world.reconcileNodes();
  t.strictSame(world.taints('arm-2'), [taintOf('arm64')]);
  t.equal(world.tolerations('late').length, 1);
  await world.reconcilePods();
  t.equal(world.tolerations('late').length, 2);
  t.equal(world.lines.filter((line) => line.includes('taints were added to nodes')).length, 1);
});

t.test('a taint of another writer does not mean that pods have their tolerations', async (t) => {
  const world = await startWorld(t, { configuration: { taintKey: 'kubernetes.io/arch' } });
  putNode(world.store, 'arm-1', 'arm64', { taints: [taintOf('arm64', 'kubernetes.io/arch')] });
  putNode(world.store, 'arm-2', 'arm64');
  putPod(world.store, 'a', 'arm-2');
  await world.reconcileNodes();
  t.strictSame(world.taints('arm-2'), []);
  await world.reconcilePods();
  t.strictSame(world.taints('arm-2'), [taintOf('arm64', 'kubernetes.io/arch')]);
  t.equal(world.record('arm-1'), undefined, 'it is not recorded as ours');
  world.configure({ taintArchitectures: [] });
  await world.reconcileNodes();
  t.strictSame(world.taints('arm-1'), [taintOf('arm64', 'kubernetes.io/arch')]);
  t.strictSame(world.taints('arm-2'), []);
});

t.test('with every architecture, all nodes are tainted except the control plane', async (t) => {
  const world = await startWorld(t, everyArchitecture);
  const { store } = world;
  putNode(store, 'amd', 'amd64', { taints: [taintOf('arm64')] });
  putNode(store, 's', 's390x');
  putNode(store, 'cp', 'amd64', { taints: [controlPlane] });
  await world.reconcilePods();
  t.strictSame(world.taints('amd'), [taintOf('amd64')], 'the wrong value is replaced');
  t.strictSame(world.taints('s'), [taintOf('s390x')]);
  t.strictSame(world.taints('cp'), [controlPlane]);
});

const tolerating: Readonly<Record<string, PodOptions>> = {
  'of a ReplicaSet': {},
  'of a Job': { owner: 'Job' },
  'pending on its node': { phase: 'Pending', ready: false },
  'without any toleration': { tolerations: [] },
  'with that of another architecture': { tolerations: [tolerationOf('amd64')] },
};
const left: Readonly<Record<string, PodOptions>> = {
  'of a DaemonSet': { owner: 'DaemonSet', ready: false },
  ended: { phase: 'Succeeded' },
  failed: { phase: 'Failed' },
  static: { annotations: { 'kubernetes.io/config.mirror': 'x' }, owner: 'Node' },
  'disabled by label': { labels: { 'arch.example/placement': 'disabled' } },
  'tolerating it': { tolerations: [tolerationOf('arm64')] },
};
for (const [name, options] of Object.entries({ ...tolerating, ...left })) {
  const gets = name in tolerating;
  t.test(`a pod ${name}: ${gets ? 'gets the toleration' : 'is not changed'}`, async (t) => {
    const world = await startWorld(t, { nodes: { 'arm-1': 'arm64', 'amd-1': 'amd64' } });
    const { store } = world;
    putPod(store, 'p', 'arm-1', options);
    const before = world.tolerations('p').length;
    await world.reconcilePods();
    t.equal(world.tolerations('p').length, before + (gets ? 1 : 0));
    t.strictSame(world.taints('arm-1'), [taintOf('arm64')]);
  });
}

const harmless: Readonly<Record<string, readonly [pod: PodOptions, template?: object[], node?: string]>> = {
  'whose pod is not ready there': [{ ready: false }, []],
  'that was deleted': [{}],
  'whose pods tolerate it': [{ tolerations: [tolerationOf('arm64')] }, []],
  'on another architecture': [{}, [], 'amd-1'],
};
for (const [name, [options, template, node = 'arm-1']] of Object.entries(harmless)) {
  t.test(`a DaemonSet ${name} blocks no taint`, async (t) => {
    const world = await startWorld(t, { nodes: { 'arm-1': 'arm64', 'amd-1': 'amd64' } });
    const { store } = world;
    putPod(store, 'log', node, { ...options, owner: 'DaemonSet' });
    if (template) putDaemonSet(store, 'log', template);
    await world.reconcilePods();
    t.strictSame(world.taints('arm-1'), [taintOf('arm64')]);
  });
}

for (const apiVersion of ['apps.kruise.io/v1alpha1', 'apps/v1']) {
  t.test(`for a DaemonSet of ${apiVersion} that may not be read, its pods count`, async (t) => {
    const world = await startWorld(t, { configuration: { taintArchitectures: ['arm64', 's390x'] } });
    const { store } = world;
    putNode(store, 's-1', 's390x');
    putPod(store, 'log', 'arm-1', { owner: 'DaemonSet', apiVersion });
    store.fault(/daemonsets/, { status: 403 });
    await world.reconcilePods();
    t.strictSame(world.taints('arm-1'), [], 'held back');
    t.strictSame(world.taints('s-1'), [taintOf('s390x')], 'another architecture is not blocked');
    like(t, world.events, [{ reason: 'TaintHeldBack', about: { apiVersion, kind: 'DaemonSet' } }]);
    t.equal(/rollout restart/.test(world.events[0]?.message ?? ''), apiVersion === 'apps/v1');

    putPod(store, 'log', 'arm-1', { owner: 'DaemonSet', apiVersion, tolerations: [tolerationOf('arm64')] });
    await world.reconcilePods();
    t.strictSame(world.taints('arm-1'), [taintOf('arm64')]);
  });
}

t.test('a skipped pod keeps one node untainted', async (t) => {
  const world = await startWorld(t, everyArchitecture);
  const { store } = world;
  putNode(store, 'amd-1', 'amd64');
  putPod(store, 'dns', 'arm-1', { namespace: 'kube-system' });
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), [], 'its successor would find no node');
  t.strictSame(world.taints('amd-1'), [taintOf('amd64')], 'it cannot run there');
  like(t, world.events, [{ reason: 'TaintHeldBack', about: { kind: 'Pod', name: 'dns' } }]);
  t.equal(await world.series('archwright_taint_blockers{reason="no-other-node"}'), 1);

  putNode(store, 'cp', 'amd64', { taints: [controlPlane] });
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), [], 'it does not tolerate the control plane');
  const unschedulable = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };
  putNode(store, 's', 's390x', { taints: [unschedulable] });
  world.configure({ taintArchitectures: ['arm64'] });
  await world.reconcileNodes();
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), [taintOf('arm64')], 'amd64 is untainted again');
  t.strictSame(world.taints('amd-1'), []);
});

t.test('a skipped pod that is static, not ready, or tolerates everything, blocks no taint', async (t) => {
  const annotations = { 'kubernetes.io/config.mirror': 'x' };
  for (const more of [{ annotations }, { ready: false }, { tolerations: [{ operator: 'Exists' }] }]) {
    const options = { namespace: 'kube-system', ...more };
    const world = await startWorld(t, everyArchitecture);
    putPod(world.store, 'dns', 'arm-1', options);
    await world.reconcilePods();
    t.strictSame(world.taints('arm-1'), [taintOf('arm64')]);
  }
});

const choices: Readonly<Record<string, readonly [spec: object, holds: boolean]>> = {
  'only this architecture': [onArch('arm64'), true],
  'another node, which has a taint': [{ nodeSelector: { zone: 'b' } }, true],
  'another node, which is not ready': [{ nodeSelector: { zone: 'c' } }, true],
  'another node': [{ nodeSelector: { zone: 'a' } }, false],
};
for (const [name, [spec, holds]] of Object.entries(choices)) {
  t.test(`a skipped pod that chooses ${name} blocks ${holds ? 'the' : 'no'} taint`, async (t) => {
    const world = await startWorld(t);
    const { store } = world;
    putNode(store, 'amd-1', 'amd64', { labels: { zone: 'a' } });
    const taints = [{ key: 'gpu', effect: 'NoSchedule' }];
    putNode(store, 'amd-2', 'amd64', { labels: { zone: 'b' }, taints });
    const status = { nodeInfo: { architecture: 'amd64', operatingSystem: 'linux' } };
    store.put('/api/v1/nodes/amd-3', { metadata: { labels: { zone: 'c' } }, status });
    putPod(store, 'dns', 'arm-1', { namespace: 'kube-system', spec });
    await world.reconcilePods();
    t.equal(world.tolerations('dns', 'kube-system').length, 1, 'the pod is not changed');
    t.strictSame(world.taints('arm-1'), holds ? [] : [taintOf('arm64')]);
    t.equal(await world.series('archwright_taint_blockers{reason="no-other-node"}'), holds ? 1 : 0);
  });
}

t.test('taints are removed on demand; another key replaces the old one in one patch', async (t) => {
  const world = await startWorld(t);
  const foreign = { key: 'dedicated', value: 'a', effect: 'NoSchedule' };
  putNode(world.store, 'arm-1', 'arm64', { taints: [foreign] });
  putPod(world.store, 'a', 'arm-1');
  await world.reconcilePods();
  world.configure({ taintKey: 'example.com/arch' });
  await world.reconcileNodes();
  like(t, world.taints('arm-1'), [foreign, taintOf('arm64')], 'until pods tolerate the new one');
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), [foreign, taintOf('arm64', 'example.com/arch')]);
  t.equal(world.tolerations('a').length, 3);

  putNode(world.store, 'arm-2', 'arm64', { annotations: { [annotation]: key } });
  world.configure({ taintArchitectures: [] });
  await world.reconcileNodes();
  t.strictSame(world.taints('arm-1'), [foreign]);
  t.strictSame(['arm-1', 'arm-2'].map(world.record), [undefined, undefined]);
});

t.test('after a second change of the key, the Lease says which taints are ours', async (t) => {
  const world = await startWorld(t, { configuration: { taintKey: 'example.com/first' } });
  const lease = `/apis/coordination.k8s.io/v1/namespaces/${world.leader.namespace}/leases/${ownNames(world.leader.configuration()).lease}`;
  world.store.put(lease, { metadata: { name: 'lease' } });
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), [taintOf('arm64', 'example.com/first')]);
  world.configure({ taintKey: 'example.com/second' });
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), [taintOf('arm64', 'example.com/second')]);
  world.configure({ taintKey: 'example.com/unused', taintArchitectures: [] });
  await world.reconcileNodes();
  t.strictSame(world.taints('arm-1'), []);
  world.configure({ taintKey: 'example.com/first', taintArchitectures: ['arm64'] });
  await world.reconcileNodes();
  t.strictSame(world.taints('arm-1'), [taintOf('arm64', 'example.com/first')]);
  t.equal(world.store.received(`PATCH ${lease}`).length, 2, 'a known key is not written again');
  like(t, world.store.get(lease), {
    metadata: { annotations: { 'arch.example/taint-keys': 'example.com/second,example.com/first' } },
  });
});

t.test('a new key with a taint of another writer replaces ours', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  const theirs = taintOf('arm64', 'kubernetes.io/arch');
  for (const name of ['arm-1', 'arm-2']) putNode(store, name, 'arm64', { taints: [theirs] });
  putPod(store, 'a', 'arm-1');
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), [theirs, taintOf('arm64')]);

  world.configure({ taintKey: 'kubernetes.io/arch' });
  await world.reconcileNodes();
  for (const name of ['arm-1', 'arm-2']) {
    t.strictSame(world.taints(name), [theirs], 'pods no longer get a toleration of the old taint');
    t.equal(world.record(name), undefined, 'the taint is not ours');
  }
  t.equal(await world.series('archwright_taint_nodes{state="tainted"}'), 2);
  const writes = store.writes().length;
  await world.reconcileNodes();
  t.equal(store.writes().length, writes);
});

t.test('if the taint of a new key is blocked, the old taint is still removed', async (t) => {
  const world = await startWorld(t, everyArchitecture);
  const { store } = world;
  putNode(store, 'amd-1', 'amd64');
  putPod(store, 'log', 'arm-1', { owner: 'DaemonSet', tolerations: [tolerationOf('arm64')] });
  putDaemonSet(store, 'log', [tolerationOf('arm64')]);
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), [taintOf('arm64')]);

  world.configure({ taintKey: 'example.com/arch' });
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), [], 'new pods would not tolerate it');
  t.equal(world.record('arm-1'), undefined);
  t.strictSame(world.taints('amd-1'), [taintOf('amd64', 'example.com/arch')]);
  like(t, world.events, [{ reason: 'TaintHeldBack', about: { name: 'of-log' } }]);
  const writes = store.writes().length;
  await world.reconcilePods();
  await world.reconcileNodes();
  t.equal(store.writes().length, writes);

  putDaemonSet(store, 'log', [tolerationOf('arm64', 'example.com/arch')]);
  await world.reconcilePods();
  t.strictSame(world.taints('arm-1'), [taintOf('arm64', 'example.com/arch')]);
});

t.test('if it is switched off while it looks for what blocks a taint, no taint follows', async (t) => {
  const world = await startWorld(t);
  putPod(world.store, 'log', 'arm-1', { owner: 'DaemonSet' });
  putDaemonSet(world.store, 'log', [tolerationOf('arm64')]);
  world.store.fault(/daemonsets/, { before: () => world.configure({ taintArchitectures: [] }) });
  await world.reconcileNodes();
  t.strictSame(world.taints('arm-1'), []);
});

t.test('a node is tainted once its kubelet has reported the architecture', async (t) => {
  const world = await startWorld(t, { nodes: {} });
  world.store.put('/api/v1/nodes/n', {
    metadata: { annotations: { [annotation]: key } },
    spec: { taints: [taintOf('arm64')] },
    status: {},
  });
  await world.reconcileNodes();
  await world.reconcilePods();
  t.strictSame(world.store.writes(), []);
});

t.test('a refused pod of one architecture counts, and is remembered, beside those of others', async (t) => {
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
