/** Custom resources in force, and their status. `e2e:chart` tests schemas. */
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import type { ResourceStatus } from '../../../src/controller/write/conditions.ts';
import type { KubeObject, Pod } from '../../../src/kube/api/objects.ts';
import { clusterConfig, podConfig } from '../../policy/resources/objects.ts';
import { installDefinitions } from './control-plane/definitions.ts';
import { startCluster } from './harness.ts';
import { isGated, podOf } from './control-plane/pods.ts';
import { startArchwright } from './archwright/start.ts';
import { hasCondition } from './control-plane/watch.ts';

type Resource = KubeObject & { readonly spec?: unknown; readonly status?: ResourceStatus };

const group = '/apis/arch.example/v1alpha1';
const clusterPath = `${group}/clusterpodplacementconfigs/cluster`;
const podsPath = '/api/v1/namespaces/shop/pods';

void t.test('custom resources apply, and have a status', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 1, arm64: 1 } }, t);
  // Webhook and controller start without the definitions, and find them later.
  const settings = { 'schedulable-architectures': 'amd64,arm64' };
  const { images, controller } = await startArchwright(cluster, { settings }, { 'max-gate-duration': '1h' });
  await installDefinitions(cluster);
  await cluster.createNamespace('shop');
  await cluster.createNamespace('left-out', { team: 'other' });

  await cluster.create(
    clusterConfig({
      preferredArchitecture: 'arm64',
      fallbackArchitecture: 's390x',
      namespaceSelector: { matchExpressions: [{ key: 'team', operator: 'DoesNotExist' }] },
    }),
  );
  const isAvailable = (now: Resource | undefined): boolean => hasCondition(now, 'Available');
  // Kinds that were absent are looked for every 30 s.
  const config = await cluster.waitFor<Resource>(clusterPath, isAvailable, 60_000);
  t.ok(hasCondition(config, 'Degraded'), 's390x is left out');
  t.equal(config?.metadata?.finalizers, undefined, 'nothing keeps it from being deleted');
  t.equal(config?.status?.observedGeneration, 1);
  await cluster.create(podConfig({ priority: 1, onUnknownImage: 'deny' }, 'older'));
  await cluster.create(podConfig({ priority: 1, labelSelector: { matchLabels: { app: 'web' } } }, 'younger'));
  const younger = `${group}/namespaces/shop/podplacementconfigs/younger`;
  await cluster.waitFor<Resource>(younger, (now) => hasCondition(now, 'Conflict'));
  await cluster.delete(`${group}/namespaces/shop/podplacementconfigs/older`);
  await cluster.waitFor<Resource>(younger, (now) => hasCondition(now, 'Conflict', 'False'));

  const image = images.push('both', ['amd64', 'arm64']);
  /** Retries until admission changes a pod as expected: the webhook learns of changes by a watch. */
  async function admitted(namespace: string, from: string, isIt: (pod: Pod) => boolean): Promise<Pod> {
    const until = performance.now() + 60_000;
    for (;;) {
      const query = { dryRun: 'All' };
      const path = `/api/v1/namespaces/${namespace}/pods`;
      const pod = await cluster.post<Pod>(path, podOf('try', from), query);
      if (isIt(pod)) return pod;
      if (performance.now() > until) throw new Error(`not admitted so: ${JSON.stringify(pod)}`);
      await pause(100);
    }
  }
  // A dry run is answered from memory.
  await cluster.post<Pod>(podsPath, podOf('teaches', image));
  await cluster.delete(`${podsPath}/teaches`);
  const preference = /"preferredDuringScheduling[^\]]*"arm64"/;
  await admitted('shop', image, (pod) => preference.test(JSON.stringify(pod)));
  t.notMatch(JSON.stringify(await admitted('left-out', image, () => true)), /arch\.example/, 'the selector');

  const missing = images.push('other', ['amd64']).replace('/other', '/missing');
  await admitted('shop', missing, isGated);
  await cluster.delete(clusterPath);
  const isPreferred = (pod: Pod): boolean => preference.test(JSON.stringify(pod));
  await admitted('shop', image, (pod) => !isPreferred(pod));
  t.notOk(controller.process.hasEnded());
});
