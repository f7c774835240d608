/** Which objects the caches watch, and which fields they keep of each. */
import t from 'tap';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { startCaches } from '../../../src/controller/state/caches.ts';
import { createSharing, trimNode, trimRunningPod } from '../../../src/controller/state/cached.ts';
import { trimWaitingPod } from '../../../src/controller/state/waiting-pods.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { connectedStore } from '../../kube/support.ts';
import { silentLog } from '../../support/captured.ts';
import { createHastyClock } from '../../support/fake-clock.ts';
import { like } from '../../support/like.ts';
import { neverAborted } from '../../support/never-aborted.ts';

const gate = 'arch.example/scheduling-gate';
const decision = 'arch.example/decision';
const created = '2026-11-21T10:00:00Z';
const ready = (status: string) => ({ type: 'Ready', status });

/** As the API server sends it, with fields that no feature reads. */
function pod(spec: object = {}, metadata: object = {}, status?: object): KubeObject {
  return {
    metadata: { name: 'web', namespace: 'shop', uid: 'u', resourceVersion: '7', ...metadata },
    spec: { containers: [{ name: 'c', image: 'web:1' }], ...spec },
    ...(status && { status }),
  } as KubeObject;
}

t.test('which pods count as waiting', async (t) => {
  const record = (outcome: string) => ({ annotations: { [decision]: JSON.stringify({ v: 1, outcome }) } });
  const gates = (...names: string[]): object => ({ schedulingGates: names.map((name) => ({ name })) });
  const table: readonly [string, KubeObject, boolean][] = [
    ['without any gate', pod(), false],
    ['with a gate of others', pod(gates('x.example/y')), false],
    ['with our gate', pod(gates(gate)), true],
    ['with our gate behind another', pod(gates('x.example/y', gate)), true],
    ['pending, by our record', pod({}, record('pending')), true],
    ['placed, by our record', pod({}, record('placed')), false],
    ['with a node', pod({ ...gates(gate), nodeName: 'n1' }), false],
    ['without a spec', { metadata: { name: 'x' } }, false],
  ];
  const share = createSharing();
  for (const [name, object, kept] of table) t.equal(trimWaitingPod(object, share) !== undefined, kept, name);
});

t.test('a waiting pod keeps what a decision reads, and nothing else', async (t) => {
  const kept = {
    metadata: {
      name: 'web',
      generateName: 'web-',
      namespace: 'shop',
      uid: 'u',
      resourceVersion: '7',
      creationTimestamp: created,
      labels: { app: 'web' },
      annotations: { [decision]: '{}' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: 'y' }],
    },
    spec: {
      serviceAccountName: 'robot',
      os: { name: 'linux' },
      nodeSelector: { a: 'b' },
      affinity: { podAntiAffinity: {}, nodeAffinity: {} },
      tolerations: [{ operator: 'Exists' }],
      schedulingGates: [{ name: 'x.example/y' }, { name: gate }],
      imagePullSecrets: [{ name: 'registry' }],
      initContainers: [{ name: 'i', image: 'init:1', restartPolicy: 'Always' }],
      containers: [{ name: 'c', image: 'web:1', imagePullPolicy: 'Always' }],
      volumes: [{ name: 'v', image: { reference: 'data:1' } }],
    },
  };
  const { metadata, spec } = kept;
  const whole = {
    metadata: {
      ...metadata,
      managedFields: [{ manager: 'kubectl' }],
      annotations: { ...metadata.annotations, 'x.example/manifest': 'long' },
    },
    spec: {
      ...spec,
      dnsPolicy: 'Default',
      containers: [{ ...spec.containers[0], env: [{ name: 'BIG', value: 'x' }] }],
      volumes: [{ name: 'tmp', emptyDir: {} }, ...spec.volumes],
    },
    status: { qosClass: 'x' },
  };
  t.strictSame(trimWaitingPod(whole as KubeObject, createSharing())?.pod, kept);
  const gated = { schedulingGates: [{ name: gate }] };
  const others = trimWaitingPod(pod(gated, { annotations: { 'x.example/y': 'z' } }), createSharing());
  t.strictSame(others?.pod.metadata?.annotations, {}, 'patches depend on whether there are any');
  const none = trimWaitingPod(pod(gated), createSharing())?.pod;
  t.notOk(none?.metadata && 'annotations' in none.metadata);
});

t.test('a running pod keeps no manifest, no environment, and annotations of its own', async (t) => {
  const annotations = { [decision]: '{}', 'kubernetes.io/config.mirror': 'hash' };
  const other = {
    'kubectl.kubernetes.io/last-applied-configuration': 'DROPPED',
    'xarch.example/no': 'DROPPED',
  };
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5', uid: 'r', controller: true };
  const spec = {
    nodeName: 'n1',
    initContainers: [{ name: 'i', image: 'init:1', env: [{ name: 'X', value: 'DROPPED' }] }],
    volumes: [
      { name: 'v', image: { reference: 'data:1', pullPolicy: 'Never' } },
      { name: 'DROPPED', emptyDir: {} },
    ],
  };
  const ownerReferences = [
    { apiVersion: 'v1', kind: 'ConfigMap', name: 'DROPPED', uid: 'o' },
    { ...owner, blockOwnerDeletion: true },
  ];
  const metadata = { annotations: { ...annotations, ...other }, ownerReferences, managedFields: ['DROPPED'] };
  const found = trimRunningPod(pod(spec, metadata, { podIP: 'DROPPED' }), createSharing());
  t.notMatch(JSON.stringify(found), /DROPPED/);
  like(t, found, {
    owner,
    annotations,
    images: [{ usedBy: 'i' }, { usedBy: 'c' }, { image: 'data:1', pullPolicy: 'Never' }],
  });
});

t.test('a running pod with few fields, and one with oversized fields', async (t) => {
  const share = createSharing();
  t.equal(trimRunningPod(pod(), share), undefined, 'no node');
  t.equal(trimRunningPod(pod({ nodeName: '' }), share), undefined, 'an empty node');
  t.equal(trimRunningPod({ metadata: { name: 'x' } }, share), undefined, 'no spec');
  like(t, trimRunningPod(pod({ nodeName: 'n1' }), share), {
    os: 'linux',
    phase: 'Unknown',
    ready: false,
    deleting: false,
    createdAt: 0,
    owner: undefined,
    annotations: undefined,
    containers: [],
    tolerations: [],
  });
  const bySelector = { nodeName: 'n1', nodeSelector: { 'kubernetes.io/os': 'windows' } };
  t.equal(trimRunningPod(pod(bySelector), share)?.os, 'windows', 'most pods for Windows set only this');
  const containerOf = (message: string) => {
    const status = { containerStatuses: [{ name: 'c', state: { terminated: { message } } }] };
    return trimRunningPod(pod({ nodeName: 'n1' }, {}, status), share)?.containers[0];
  };
  t.equal(containerOf('')?.message, undefined);
  t.equal(containerOf('x'.repeat(256))?.message, 'x'.repeat(256));
  t.equal(containerOf('x'.repeat(4096))?.message, 'x'.repeat(256));
  t.equal(containerOf(`x${'é'.repeat(200)}`)?.message, `x${'é'.repeat(127)}`, 'cut between characters');
  const unknown = { ready: false, restartCount: 0, image: '', imageID: '' };
  like(t, containerOf('m'), { ...unknown, reason: undefined, exitCode: undefined });
});

t.test('pods of one workload share equal values, which are frozen', async (t) => {
  const share = createSharing();
  const one = trimRunningPod(pod({ nodeName: 'n1' }, { labels: { app: 'web' } }), share);
  const two = trimRunningPod(pod({ nodeName: 'n2' }, { name: 'web-2', labels: { app: 'web' } }), share);
  t.equal(one?.labels, two?.labels);
  t.equal(one?.images, two?.images);
  t.not(one?.node, two?.node);
  t.ok(Object.isFrozen(one?.labels) && Object.isFrozen(one?.images[0]));

  const many = createSharing();
  const [a, b] = [{ x: 1 }, { x: 1 }];
  for (let count = 1; count < 20_000; count += 1) many(`${count}`);
  t.equal(many(a), a);
  t.equal(many(b), a);
  many('one more');
  t.equal(many(b), b, 'beyond its limit, the pool of shared values starts over');
  t.not(many('"x'), many(['x']));
  t.equal(many(undefined), undefined);
});

t.test('the fields of a node', async (t) => {
  const share = createSharing();
  const labels = { 'kubernetes.io/arch': 's390x', 'kubernetes.io/os': 'linux' };
  const taint = { key: 'a', value: 'b', effect: 'NoSchedule' };
  const other = { key: 'c', effect: 'NoExecute' };
  const node = {
    metadata: {
      name: 'n1',
      uid: 'u',
      resourceVersion: '3',
      creationTimestamp: created,
      labels: { ...labels, 'kubernetes.io/os': 'wrong', 'kubernetes.io/hostname': 'h1' },
      annotations: { 'arch.example/taint': 'a', other: 'x' },
    },
    spec: { taints: [{ ...taint, timeAdded: 'x' }, other] },
    status: {
      nodeInfo: { architecture: 'arm64', operatingSystem: 'linux' },
      conditions: [ready('True')],
    },
  };
  t.strictSame(trimNode(node, share), {
    name: 'n1',
    resourceVersion: '3',
    architecture: 'arm64',
    os: 'linux',
    hostname: 'h1',
    classified: { name: 'n1', hostname: 'h1', class: { os: 'linux', architecture: 'arm64' }, levels: {} },
    taints: [taint, other],
    ownTaintKey: 'a',
    ready: true,
    readyChangedAt: 0,
    unschedulable: false,
    deleting: false,
    pool: 's390x/unknown',
    labels: node.metadata.labels,
    isChosen: false,
    createdAt: Date.parse(created),
  });
  const mute = { nodeInfo: { architecture: '', operatingSystem: '' } };
  const unreported = { metadata: { name: 'n3', labels }, status: mute };
  const byLabels = { architecture: 's390x', os: 'linux', hostname: undefined, taints: [], ready: false };
  like(t, trimNode(unreported, share), byLabels, 'its kubelet has not reported yet');
  like(t, trimNode({ metadata: { name: 'n2', labels } }, share), byLabels);
  const notReady = { metadata: {}, status: { conditions: [ready('Unknown')] } };
  t.equal(trimNode(notReady, share).ready, false);
});

t.test('waiting and running pods are two watches; a custom resource may be missing', async (t) => {
  const { store, client } = await connectedStore(t);
  store.put('/api/v1/namespaces/shop/pods/gated', {
    spec: { containers: [], schedulingGates: [{ name: gate }] },
  });
  store.put('/api/v1/namespaces/shop/pods/running', { spec: { nodeName: 'n1', containers: [] } });
  store.put('/api/v1/nodes/n1', {});
  store.put('/api/v1/namespaces/shop', { metadata: { labels: { team: 'a' } } });
  store.put('/apis/arch.example/v1alpha1/clusterpodplacementconfigs/cluster', { spec: { priority: 3 } });
  store.fault(/\/podplacementconfigs$/, { status: 404 });
  store.fault(/architecturerollouts$/, { status: 500, times: 1 });
  const metrics = createMetrics();
  const caches = startCaches({ client, log: silentLog, metrics, clock: createHastyClock() });
  t.teardown(() => caches.stop());
  const shows = async (series: string) => (await metrics.render()).includes(series);
  await caches.ready(neverAborted);
  t.equal(caches.waitingPods.get('shop', 'gated')?.pod.metadata?.name, 'gated');
  t.equal(caches.runningPods.get('shop', 'running')?.node, 'n1');
  t.strictSame([caches.waitingPods.size, caches.runningPods.size, caches.podConfigs.size], [1, 1, 0]);
  t.equal(caches.nodes.get('', 'n1')?.name, 'n1');
  like(t, caches.namespaces.get('', 'shop'), { team: 'a' });
  like(t, caches.clusterConfigs.get('', 'cluster'), { spec: { priority: 3 } }, 'kept as they are');
  await store.until(() => store.watches() === 6, 'every watch');
  const selectors = store.received(/pods$/).map(({ query }) => query.get('fieldSelector'));
  t.strictSame(new Set(selectors), new Set(['spec.nodeName!=', 'spec.nodeName=']));
  t.ok(await shows('archwright_kube_watches{resource="nodes",state="open"} 1'));
  t.ok(await shows('archwright_kube_watches{resource="podplacementconfigs",state="absent"} 1'));
  t.ok(await shows('archwright_controller_cached_objects{watch="waitingPods"} 1'));
  caches.stop();
  t.ok(await shows('archwright_controller_cached_objects{watch="waitingPods"} 0'));
});
