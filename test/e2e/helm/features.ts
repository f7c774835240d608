/** An image that comes late, and more features: taints, pods on wrong nodes, images with wrong binaries, custom resources. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { chart } from '../chart/helm.ts';
import { type Cluster } from '../cluster/harness.ts';
import { ownTaints, type NodeObject, type Taint } from '../cluster/control-plane/nodes.ts';
import { watch } from '../cluster/control-plane/watch.ts';
import { expectNothingForbidden, expectSameAsBefore } from './leaving.ts';
import { steadyListing } from '../cluster/control-plane/listing.ts';
import type { Followed } from './logs.ts';
import { untilWebhooksInForce, untilReady, webhookConfiguration } from './parts.ts';
import { deletePods, podOf, runningPod } from './pods.ts';
import { waitForEvent, workload, type EventNow, type PodNow } from '../cluster/control-plane/pods.ts';
import {
  canTrace,
  expectAgentWithoutTracefs,
  expectProgramErrors,
  expectNoInstances,
  postRenderer,
  startPrograms,
} from './program-errors.ts';
import { namespace, type Helm } from './release.ts';
import { reportLine, step } from './report.ts';
import { expectUsedRights } from './rights.ts';
import { releaseValues, type World } from './world.ts';

const customResources = fileURLToPath(new URL('../../../examples/custom-resources.yaml', import.meta.url));
/** The example is for another namespace. */
const rollout = readFileSync(new URL('../../../examples/rollout.yaml', import.meta.url), 'utf8').replace(
  'namespace: shop',
  'namespace: default',
);
const resourcePaths = [
  '/apis/arch.example/v1alpha1/clusterpodplacementconfigs/cluster',
  '/apis/arch.example/v1alpha1/namespaces/default/podplacementconfigs/batch',
  '/apis/arch.example/v1alpha1/namespaces/default/architecturerollouts/web',
];
const workloadPaths = ['deployments/misplaced', 'deployments/broken', 'daemonsets/mainframe'].map(
  (name) => `/apis/apps/v1/namespaces/default/${name}`,
);
/** A pod is evicted after half a minute at the earliest; a log is read after some crashes. */
const patienceMs = 120_000;

export async function features(world: World, helm: Helm, logs: Followed): Promise<void> {
  const { cluster, image, own } = world;
  const of = (name: string): string => `${helm.name}, features: ${name}`;
  for (const name of ['arm64-0', 's390x-0']) await cluster.delete(`/api/v1/nodes/${name}`);
  const before = await steadyListing(cluster);
  const misplaced = await step(of('a pod lands on a node that cannot run it'), async () => {
    // A kubelet ignores the architecture of a single manifest. With one agent, the pulled digest is proof.
    const arm = { image: image('public/arm'), command: ['/missing'] };
    await cluster.create(podsOf('Deployment', 'misplaced', arm));
    return await podNamed(cluster, 'misplaced-', (pod) => pod.spec.nodeName !== undefined);
  });
  await cluster.createNodes([
    { name: 'arm64-0', architecture: 'arm64' },
    { name: 's390x-0', architecture: 's390x' },
  ]);
  // A workload without tolerations from before the installation.
  const mainframe = { image: image('plugin/mainframe') };
  await cluster.create(podsOf('DaemonSet', 'mainframe', mainframe, 's390x'));
  await podNamed(cluster, 'mainframe-', (pod) => pod.spec.nodeName !== undefined);
  const script = "echo 'exec /app: exec format error'; exit 1";
  const broken = { image: image('public/intel'), command: ['/busybox', 'sh', '-c', script] };
  await cluster.create(podsOf('Deployment', 'broken', broken, 'amd64'));

  const traces = canTrace();
  if (traces) await step(of('programs of another architecture start'), () => startPrograms(world));
  else reportLine({ fact: 'this machine cannot trace: programs that fail later are left out' });

  const values = helm.values('features', {
    ...releaseValues(world),
    taintArchitectures: ['s390x'],
    execFormatErrorTracing: traces,
  });
  await step(of('install before our image is pushed: other pods are not delayed'), async () => {
    const missing = {
      ...releaseValues(world),
      image: { ...own, tag: 'not-yet' },
      startupCheck: { enabled: false },
    };
    await helm.run('install', 'archwright', chart, helm.values('missing', missing));
    const isWaiting = ({ status }: PodNow): boolean =>
      status?.containerStatuses?.some(({ state }) => /ImagePull/.test(state?.waiting?.reason ?? '')) ?? false;
    await podNamed(cluster, 'archwright-', isWaiting, namespace);
    await cluster.create(podOf({ name: 'meanwhile', images: [image('public/multi')] }));
    const { webhooks } = await cluster.get<{ webhooks?: unknown }>(webhookConfiguration);
    assert.deepEqual(webhooks ?? [], [], 'the API server calls no webhook');
    await runningPod(cluster, 'meanwhile');
    await deletePods(cluster, ['meanwhile']);
  });
  await step(of('the upgrade to an existing image repairs it'), async () => {
    await helm.run('upgrade', 'archwright', chart, values, postRenderer(), '--wait', '--timeout', '3m');
    await untilReady(cluster);
    await untilWebhooksInForce(cluster);
  });
  await step(of('a taint waits for a DaemonSet that does not tolerate it'), async () => {
    await eventOf(cluster, 'TaintHeldBack');
    assert.deepEqual(await taintsOf(cluster), []);
    await cluster.delete(workloadPaths[2] ?? '');
    const isTainted = (node: NodeObject | undefined): boolean => ownTaints(node).length > 0;
    await cluster.waitFor<NodeObject>('/api/v1/nodes/s390x-0', isTainted, patienceMs);
  });
  await step(of('custom resources get a status, and can be deleted'), async () => {
    await cluster.applyYaml(readFileSync(customResources, 'utf8'));
    await cluster.applyYaml(rollout);
    type Resource = KubeObject & { readonly status?: { readonly conditions?: readonly unknown[] } };
    const hasStatus = (now: Resource | undefined): boolean => (now?.status?.conditions ?? []).length > 0;
    for (const path of resourcePaths) await cluster.waitFor<Resource>(path, hasStatus);
    for (const path of resourcePaths) {
      await cluster.delete(path);
      await cluster.waitFor(path, (object) => object === undefined);
    }
  });
  await step(of('the misplaced pod is evicted, and its successor runs on another node'), async () => {
    await eventOf(cluster, 'MisplacedPodEvicted');
    const moved = await podNamed(
      cluster,
      'misplaced-',
      (pod) => pod.metadata?.uid !== misplaced.metadata?.uid && pod.status?.phase === 'Running',
    );
    assert.equal(moved.spec.nodeName, 'arm64-0');
  });
  await step(of('an exec format error in a log is reported by an event'), () =>
    eventOf(cluster, 'ExecFormatError'),
  );
  if (traces) {
    await step(of('programs that fail later are reported by events'), () => expectProgramErrors(world));
    await step(of('an agent without tracefs'), () => expectAgentWithoutTracefs(world, logs));
  }

  for (const path of workloadPaths.slice(0, 2)) await cluster.delete(path);
  await step(of('uninstall removes the taint'), async () => {
    await helm.run('uninstall', 'archwright', '--wait', '--timeout', '2m');
    assert.deepEqual(await taintsOf(cluster), []);
  });
  for (const name of ['arm64-0', 's390x-0']) await cluster.delete(`/api/v1/nodes/${name}`);
  await expectSameAsBefore(world, helm, before);
  if (traces) await step(of('the kernel traces nothing any more'), expectNoInstances);
  await step(of('no request was refused for a missing right'), () => expectNothingForbidden(logs));
  await step(of('every right is used'), () => expectUsedRights(helm, values));
}

function podsOf(
  kind: 'Deployment' | 'DaemonSet',
  name: string,
  container: object,
  architecture?: string,
): object {
  const nodeSelector = architecture === undefined ? {} : { 'kubernetes.io/arch': architecture };
  return workload(kind, name, container, { pod: { terminationGracePeriodSeconds: 0, nodeSelector } });
}

async function podNamed(
  cluster: Cluster,
  prefix: string,
  fits: (pod: PodNow) => boolean,
  inNamespace = 'default',
): Promise<PodNow> {
  const watched = await cluster.watch<PodNow>(`/api/v1/namespaces/${inNamespace}/pods`);
  const isIt = (pod: PodNow): boolean => (pod.metadata?.name ?? '').startsWith(prefix) && fits(pod);
  return watched
    .until(`a pod ${prefix}…`, (pods) => [...pods.values()].find(isIt), patienceMs)
    .finally(() => watched.close());
}

async function eventOf(cluster: Cluster, reason: string): Promise<void> {
  const events = await watch<EventNow>(cluster.client, '/api/v1/events', {
    fieldSelector: `reason=${reason}`,
  });
  await waitForEvent(events, reason, [], patienceMs).finally(() => events.close());
}

async function taintsOf(cluster: Cluster): Promise<readonly Taint[]> {
  return ownTaints(await cluster.get<NodeObject>('/api/v1/nodes/s390x-0'));
}
