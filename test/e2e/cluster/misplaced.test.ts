/**
 * Misplaced pods on a real control plane: pods from before the webhook, on wrong nodes, are evicted: a limited number at a time, within
 * their PodDisruptionBudget, and once each.
 */
import t from 'tap';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { metricOf, startController } from './archwright.ts';
import { startCluster } from './harness.ts';
import { startImages } from './images.ts';
import { cordon, crash, deployment, isGoing, isOn, isReady, podsOf, settledOn } from './misplaced.ts';
import type { PodNow } from './pods.ts';
import { startAdmission } from './start-archwright.ts';
import { watch } from './watch.ts';

interface EventNow extends KubeObject {
  readonly reason: string;
  readonly involvedObject: { readonly kind: string };
}

void t.test('misplaced pods are moved', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 2, arm64: 2 } });
  t.teardown(() => cluster.stop());
  const { client } = cluster;
  const images = await startImages(cluster);
  const image = images.push('shop/web', ['amd64']);
  const pods = await watch<PodNow>(client, '/api/v1/pods');
  t.teardown(() => pods.close());

  await cordon(cluster, ['amd64-0', 'amd64-1'], true);
  await cluster.create(deployment('web', image, 6));
  await cluster.create(deployment('free', image, 1, { labels: { 'arch.example/placement': 'disabled' } }));
  await cluster.create({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web' },
    spec: { minAvailable: 6, selector: { matchLabels: { app: 'web' } } },
  });
  for (const pod of await settledOn(pods, 'web', 'arm64', 6)) await crash(cluster, pod);
  for (const pod of await settledOn(pods, 'free', 'arm64', 1)) await crash(cluster, pod);
  await cordon(cluster, ['amd64-0', 'amd64-1'], false);

  const { tls, agents } = await startAdmission(cluster, { images });
  let mostMoving = 0;
  pods.onChange(() => {
    const staying = podsOf(pods.objects.values(), 'web').filter(
      (pod) => !isGoing(pod) && (isOn(pod, 'arm64') || isReady(pod)),
    );
    mostMoving = Math.max(mostMoving, 6 - staying.length);
  });
  const settings = { 'misplaced-pods-share': '34', 'evictions-per-minute': '600' };
  const first = await startController(cluster, { tls, agents, settings, name: 'first' });
  const events = await watch<EventNow>(client, '/api/v1/namespaces/default/events');
  t.teardown(() => events.close());
  await events.until(
    'an eviction that is held',
    (objects) => [...objects.values()].some(({ reason }) => reason === 'MisplacedPodHeld'),
    120_000,
  );
  t.equal(mostMoving, 0, 'the budget holds');
  t.equal(await metricOf(first, 'archwright_misplaced_pods'), 6, 'without the skipped one');
  await first.process.stop();

  await cluster.delete('/apis/policy/v1/namespaces/default/poddisruptionbudgets/web');
  const second = await startController(cluster, { tls, agents, settings, name: 'second' });
  await settledOn(pods, 'web', 'amd64', 6);
  t.ok(mostMoving <= 2, `${mostMoving} of 6 at once`);
  t.equal(await metricOf(second, 'archwright_misplaced_pods_total', { outcome: 'evicted' }), 6);
  t.equal(
    podsOf(pods.objects.values(), 'free').filter((pod) => isOn(pod, 'arm64') && !isGoing(pod)).length,
    1,
  );

  const told = (kind: string, reason: string) => (objects: ReadonlyMap<string, EventNow>) =>
    [...objects.values()].some((each) => each.reason === reason && each.involvedObject.kind === kind);
  await events.until('an event of a pod', told('Pod', 'MisplacedPodEvicted'));
  await events.until('an event of the Deployment', told('Deployment', 'MisplacedPodEvicted'));
});
