/** Features beyond the creation of pods: taints, pods on wrong nodes, images with wrong binaries, custom resources. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { KubeObject, Pod } from '../../../src/kube/api/objects.ts';
import { chart } from '../chart/helm.ts';
import { type Cluster } from '../cluster/harness.ts';
import type { NodeObject } from '../cluster/nodes.ts';
import { waitFor, watch } from '../cluster/watch.ts';
import { nothingForbidden, sameAsBefore } from './leaving.ts';
import { listEverything } from '../cluster/listing.ts';
import type { Followed } from './logs.ts';
import { webhooksInForce, whole } from './parts.ts';
import { type PodNow } from '../cluster/pods.ts';
import type { Helm } from './release.ts';
import { step } from './report.ts';
import { usesItsRights } from './rights.ts';
import { cardValues } from './values.ts';
import type { World } from './world.ts';

const customResources = fileURLToPath(new URL('../../../examples/custom-resources.yaml', import.meta.url));
const resourcePaths = [
  '/apis/arch.example/v1alpha1/clusterpodplacementconfigs/cluster',
  '/apis/arch.example/v1alpha1/namespaces/default/podplacementconfigs/batch',
];
const workloadPaths = ['deployments/misplaced', 'deployments/broken', 'daemonsets/mainframe'].map(
  (name) => `/apis/apps/v1/namespaces/default/${name}`,
);
/** A pod is evicted after half a minute at the earliest; a log is read after some crashes. */
const patienceMs = 120_000;

export async function features(world: World, helm: Helm, logs: Followed): Promise<void> {
  const { cluster, images } = world;
  const { client } = cluster;
  const of = (name: string): string => `${helm.name}, features: ${name}`;
  await cluster.delete('/api/v1/nodes/amd64-0');
  const before = await listEverything(cluster);
  const misplaced = await step(of('a pod lands on a node that cannot run it'), async () => {
    // The node has no credential for it, so the pod waits. (A kubelet ignores the architecture of a single manifest.)
    await cluster.create(workload('Deployment', 'misplaced', { image: images['team/others'] ?? '' }));
    return await podNamed(cluster, 'misplaced-', (pod) => pod.spec.nodeName !== undefined);
  });
  await cluster.createNodes([
    { name: 'arm64-0', architecture: 'arm64' },
    { name: 's390x-0', architecture: 's390x' },
  ]);
  // A workload without tolerations from before the installation.
  await cluster.create(
    workload('DaemonSet', 'mainframe', { image: images['plugin/mainframe'] ?? '' }, 's390x'),
  );
  await podNamed(cluster, 'mainframe-', (pod) => pod.spec.nodeName !== undefined);
  const said = "echo 'exec /app: exec format error'; exit 1";
  await cluster.create(
    workload(
      'Deployment',
      'broken',
      { image: images['public/intel'] ?? '', command: ['/busybox', 'sh', '-c', said] },
      'amd64',
    ),
  );

  const values = helm.values('features', { ...cardValues(world), taintArchitectures: ['s390x'] });
  await step(of('install'), async () => {
    await helm.run('install', 'archwright', chart, values, '--wait', '--timeout', '2m');
    await whole(cluster);
    await webhooksInForce(cluster);
  });
  await step(of('a taint waits for a DaemonSet that does not tolerate it'), async () => {
    await eventOf(cluster, 'TaintHeldBack');
    assert.deepEqual(await taintsOf(cluster), []);
    await cluster.delete(workloadPaths[2] ?? '');
    await waitFor<NodeObject>(
      client,
      '/api/v1/nodes/s390x-0',
      (node) => (node?.spec?.taints ?? []).some(({ key }) => key === 'arch.example/architecture'),
      patienceMs,
    );
  });
  await step(of('custom resources get a status, and can be deleted'), async () => {
    await cluster.applyYaml(readFileSync(customResources, 'utf8'));
    for (const path of resourcePaths) {
      await waitFor<KubeObject & { readonly status?: { readonly conditions?: readonly unknown[] } }>(
        client,
        path,
        (object) => (object?.status?.conditions ?? []).length > 0,
      );
    }
    for (const path of resourcePaths) {
      await cluster.delete(path);
      await waitFor(client, path, (object) => object === undefined);
    }
  });
  await step(of('the misplaced pod is evicted, and its successor runs on another node'), async () => {
    await eventOf(cluster, 'MisplacedPodEvicted');
    const moved = await podNamed(
      cluster,
      'misplaced-',
      (pod) => pod.metadata?.uid !== misplaced.metadata?.uid && pod.status?.phase === 'Running',
    );
    assert.match(moved.spec.nodeName ?? '', /^(?:arm64|s390x)-0$/);
  });
  await step(of('an exec format error in a log is reported by an event'), () =>
    eventOf(cluster, 'ExecFormatError'),
  );

  for (const path of workloadPaths.slice(0, 2)) await cluster.delete(path);
  await step(of('uninstall removes the taint'), async () => {
    await helm.run('uninstall', 'archwright', '--wait', '--timeout', '2m');
    assert.deepEqual(await taintsOf(cluster), []);
  });
  for (const name of ['arm64-0', 's390x-0']) await cluster.delete(`/api/v1/nodes/${name}`);
  await sameAsBefore(world, helm, before);
  await step(of('no request was refused for a missing right'), () => nothingForbidden(logs));
  await step(of('every right is used'), () => usesItsRights(helm, values));
}

function workload(kind: string, name: string, container: object, architecture?: string): object {
  const labels = { app: name };
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 0,
          ...(architecture !== undefined && { nodeSelector: { 'kubernetes.io/arch': architecture } }),
          containers: [{ name: 'app', ...container }],
        },
      },
    },
  };
}

/** Waits for a pod by the beginning of its name. */
async function podNamed(cluster: Cluster, prefix: string, fits: (pod: PodNow) => boolean): Promise<PodNow> {
  const watched = await watch<PodNow>(cluster.client, '/api/v1/namespaces/default/pods');
  const find = (pods: ReadonlyMap<string, PodNow>): PodNow | undefined =>
    [...pods.values()].find((pod) => pod.metadata?.name?.startsWith(prefix) === true && fits(pod));
  try {
    await watched.until(`a pod ${prefix}…`, (pods) => find(pods) !== undefined, patienceMs);
    const found = find(watched.objects);
    assert(found !== undefined);
    return found;
  } finally {
    watched.close();
  }
}

async function eventOf(cluster: Cluster, reason: string): Promise<void> {
  const until = performance.now() + patienceMs;
  for (;;) {
    const { items } = await cluster.get<{ readonly items: readonly Pod[] }>('/api/v1/events', {
      fieldSelector: `reason=${reason}`,
    });
    if (items.length > 0) return;
    assert(performance.now() < until, `an event ${reason}`);
    await pause(500);
  }
}

/** archwright's taints on the s390x node. */
async function taintsOf(cluster: Cluster): Promise<readonly string[]> {
  const node = await cluster.get<NodeObject>('/api/v1/nodes/s390x-0');
  return (node.spec?.taints ?? []).flatMap(({ key }) => (key.startsWith('arch.example/') ? [key] : []));
}
