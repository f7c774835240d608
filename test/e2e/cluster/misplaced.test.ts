/** Evictions of pods from before the webhook: few at a time, within the budget, once each. */
import t from 'tap';
import { metricOf, startController } from './archwright/archwright.ts';
import { startCluster } from './harness.ts';
import { startImages } from './archwright/images.ts';
import {
  budgetOf,
  cordon,
  crash,
  isGoing,
  isOn,
  podsOf,
  settledOn,
  waitForEvent,
  workload,
  type EventNow,
  type PodNow,
} from './control-plane/pods.ts';
import { startAdmission } from './archwright/start.ts';
import { hasCondition } from './control-plane/watch.ts';

void t.test('misplaced pods are evicted, and their replacements run elsewhere', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 2, arm64: 2 } }, t);
  const images = await startImages(cluster);
  const image = images.push('shop/web', ['amd64']);
  const pods = await cluster.watch<PodNow>('/api/v1/pods', t);

  await cordon(cluster, ['amd64-0', 'amd64-1'], true);
  await cluster.create(workload('Deployment', 'web', { image }, { replicas: 6 }));
  const labels = { 'arch.example/placement': 'disabled' };
  await cluster.create(workload('Deployment', 'free', { image }, { replicas: 1, labels }));
  await budgetOf(cluster, 'web', 6);
  for (const pod of await settledOn(pods, 'web', 'arm64', 6)) await crash(cluster, pod);
  for (const pod of await settledOn(pods, 'free', 'arm64', 1)) await crash(cluster, pod);
  await cordon(cluster, ['amd64-0', 'amd64-1'], false);

  const { tls, agents } = await startAdmission(cluster, { images, secondAgent: true });
  let mostMoving = 0;
  pods.onChange(() => {
    const staying = podsOf(pods.objects.values(), 'web').filter(
      (pod) => !isGoing(pod) && (isOn(pod, 'arm64') || hasCondition(pod, 'Ready')),
    );
    mostMoving = Math.max(mostMoving, 6 - staying.length);
  });
  const settings = { 'misplaced-pods-share': '34', 'evictions-per-minute': '600' };
  const first = await startController(cluster, { tls, agents, settings, name: 'first' });
  const events = await cluster.watch<EventNow>('/api/v1/namespaces/default/events', t);
  await waitForEvent(events, 'MisplacedPodHeld', [], 120_000);
  t.equal(mostMoving, 0, 'the PodDisruptionBudget is kept');
  t.equal(await metricOf(first, 'archwright_misplaced_pods'), 6, 'without the skipped one');
  await first.process.stop();

  await cluster.delete('/apis/policy/v1/namespaces/default/poddisruptionbudgets/web');
  const second = await startController(cluster, { tls, agents, settings, name: 'second' });
  await settledOn(pods, 'web', 'amd64', 6);
  t.ok(mostMoving <= 2, `${mostMoving} of 6 at once`);
  t.equal(await metricOf(second, 'archwright_misplaced_pods_total', { outcome: 'evicted' }), 6);
  const free = podsOf(pods.objects.values(), 'free').filter((pod) => isOn(pod, 'arm64') && !isGoing(pod));
  t.equal(free.length, 1);
  for (const kind of ['Pod', 'Deployment']) await waitForEvent(events, 'MisplacedPodEvicted', [kind]);
});
