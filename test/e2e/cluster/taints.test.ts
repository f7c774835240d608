/** Taints on a real control plane: tolerations, then taints; a DaemonSet blocks a taint; and back. */
import t from 'tap';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { startController } from './archwright/archwright.ts';
import { startCluster } from './harness.ts';
import { startImages } from './archwright/images.ts';
import type { NodeObject } from './control-plane/nodes.ts';
import { podOf, waitForEvent, workload, type EventNow, type PodNow } from './control-plane/pods.ts';
import { startAdmission } from './archwright/start.ts';

const key = 'arch.example/architecture';
const foreign = { key: 'dedicated', value: 'shop', effect: 'PreferNoSchedule' };

const isTainted = ({ spec }: NodeObject): boolean =>
  spec?.taints?.some(
    (taint) => taint.key === key && taint.value === 'arm64' && taint.effect === 'NoSchedule',
  ) ?? false;
const tolerates = ({ spec }: PodNow): boolean =>
  spec.tolerations?.some((toleration) => toleration.key === key && toleration.value === 'arm64') ?? false;
const version = ({ metadata }: KubeObject): number => Number(metadata?.resourceVersion);

void t.test('pods get tolerations before nodes get taints, and in reverse order back', async (t) => {
  const cluster = await startCluster(
    {
      nodes: [
        { name: 'amd64-0', architecture: 'amd64' },
        { name: 'arm64-0', architecture: 'arm64' },
        {
          name: 'arm64-1',
          architecture: 'arm64',
          taints: [foreign, { key, value: 'blue', effect: 'PreferNoSchedule' }],
        },
      ],
    },
    t,
  );
  const images = await startImages(cluster);
  const both = images.push('shop/both', ['amd64', 'arm64']);
  const pods = await cluster.watch<PodNow>('/api/v1/pods', t);
  const nodes = await cluster.watch<NodeObject>('/api/v1/nodes', t);
  const events = await cluster.watch<EventNow>('/api/v1/events', t);
  const toleratedAt = new Map<string, number>();
  pods.onChange(({ object }) => {
    const uid = object.metadata?.uid ?? '';
    if (tolerates(object) && !toleratedAt.has(uid)) toleratedAt.set(uid, version(object));
  });
  const taintedAt = new Map<string, number>();
  nodes.onChange(({ object }) => {
    const name = object.metadata?.name ?? '';
    if (isTainted(object) && !taintedAt.has(name)) taintedAt.set(name, version(object));
  });

  await cluster.create(workload('Deployment', 'web', { image: both }, { replicas: 12 }));
  await cluster.create(workload('DaemonSet', 'log', { image: both }));
  const before = await pods.until('pods that run', (objects) => {
    const found = [...objects.values()].filter(({ status }) => status?.phase === 'Running');
    return found.length === 15 && found;
  });
  const onArm = before.filter(
    ({ spec, metadata }) => spec.nodeName?.startsWith('arm64') && metadata?.labels?.['app'] === 'web',
  );
  t.ok(onArm.length > 0, `${onArm.length} pods on arm64`);

  const settings = { 'taint-architectures': 'arm64' };
  const { tls, agents } = await startAdmission(cluster, { images, settings });
  const controller = await startController(cluster, { tls, agents, settings });
  await waitForEvent(events, 'TaintHeldBack', ['DaemonSet', /^log$/], 60_000);
  t.equal(taintedAt.size, 0);

  const tolerations = [{ operator: 'Exists', effect: 'NoSchedule' }];
  await cluster.merge('/apis/apps/v1/namespaces/default/daemonsets/log', {
    spec: { template: { spec: { tolerations } } },
  });
  await nodes.until('both taints', () => taintedAt.size === 2, 60_000);
  const first = Math.min(...taintedAt.values());
  for (const { metadata } of onArm) {
    const at = toleratedAt.get(metadata?.uid ?? '') ?? Number.NaN;
    t.ok(at < first, `${metadata?.name}: tolerated at ${at}, first taint at ${first}`);
  }
  const uids = new Set([...pods.objects.values()].map(({ metadata }) => metadata?.uid));
  t.ok(
    onArm.every(({ metadata }) => uids.has(metadata?.uid)),
    'no pod was evicted',
  );
  const blue = nodes.objects.get('arm64-1')?.spec?.taints;
  t.match(
    blue,
    [foreign, { key, value: 'arm64', effect: 'NoSchedule' }],
    'a wrong value is replaced, other taints stay',
  );
  t.equal(blue?.length, 2);

  await cluster.createNodes([{ name: 'arm64-9', architecture: 'arm64' }]);
  await nodes.until('the taint of the new node', () => taintedAt.has('arm64-9'));
  await cluster.create(podOf('goes-there', both, { nodeSelector: { 'kubernetes.io/hostname': 'arm64-9' } }));
  await pods.until(
    'a new pod on the new node',
    (objects) => objects.get('default/goes-there')?.spec.nodeName === 'arm64-9',
  );

  await controller.process.stop();
  await startController(cluster, { tls, agents, name: 'without' });
  const left = await nodes.until(
    'no taint of ours',
    (objects) => ![...objects.values()].some(isTainted) && [...objects.values()],
    60_000,
  );
  t.same(left.find(({ metadata }) => metadata?.name === 'arm64-1')?.spec?.taints, [foreign]);
  t.notOk(left.some(({ metadata }) => metadata?.annotations?.['arch.example/taint'] !== undefined));
});
