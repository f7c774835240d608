/** A single-architecture cluster without archwright's image: no pod is delayed. With the image, all works. */
import assert from 'node:assert/strict';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { chart } from '../chart/helm.ts';
import { leaving, nothingForbidden } from './leaving.ts';
import { listEverything } from '../cluster/listing.ts';
import type { Followed } from './logs.ts';
import { webhooksInForce, whole } from './parts.ts';
import type { PodNow } from '../cluster/pods.ts';
import { deletePods, isPlaced, podOf, runningPod, whereRuns } from './pods.ts';
import { namespace, type Helm } from './release.ts';
import { step } from './report.ts';
import { cardValues, type World } from './world.ts';

export async function lateImage(world: World, helm: Helm, logs: Followed): Promise<void> {
  const { cluster, image, own } = world;
  const of = (name: string): string => `${helm.name}: ${name}`;
  for (const name of ['arm64-0', 's390x-0']) await cluster.delete(`/api/v1/nodes/${name}`);
  // The real one takes 110 pods.
  await cluster.createNodes([{ name: 'amd64-0', architecture: 'amd64', pods: 5000 }]);
  const before = await listEverything(cluster);
  const card = cardValues(world);
  const missing = helm.values('missing', {
    ...card,
    image: { ...own, tag: 'not-yet' },
    startupCheck: { enabled: false },
  });

  await step(of('install before our image is pushed'), async () => {
    await helm.run('install', 'archwright', chart, missing);
    const watched = await cluster.watch<PodNow>(`/api/v1/namespaces/${namespace}/pods`);
    try {
      await watched.until(
        'pods of ours wait for their image',
        (found) =>
          [...found.values()].some(({ status }) =>
            status?.containerStatuses?.some(({ state }) => /ImagePull/.test(state?.waiting?.reason ?? '')),
          ),
        90_000,
      );
    } finally {
      watched.close();
    }
  });
  await step(of('other pods are not delayed meanwhile'), async () => {
    const started = performance.now();
    const pod = await cluster.create<Pod>(podOf({ name: 'meanwhile', images: [image('public/multi')] }));
    assert(performance.now() - started < 1_000, 'created at once');
    assert(!isPlaced(pod), 'and skipped');
    await runningPod(cluster, 'meanwhile');
    await deletePods(cluster, ['meanwhile']);
  });
  await step(of('the upgrade to an existing image repairs it'), async () => {
    await helm.run('upgrade', 'archwright', chart, helm.values('card', card), '--wait', '--timeout', '3m');
    await whole(cluster);
    await webhooksInForce(cluster);
  });
  await step(of('pods of a cluster of one architecture run'), async () => {
    const wanted = ['public/multi', 'public/intel', 'plugin/multi'] as const;
    for (const [index, name] of wanted.entries())
      await cluster.create(podOf({ name: `single-${index}`, images: [image(name)] }));
    for (const index of wanted.keys()) assert.equal(await whereRuns(cluster, `single-${index}`), 'amd64');
    await deletePods(
      cluster,
      [...wanted.keys()].map((index) => `single-${index}`),
    );
  });
  await leaving(world, helm, before);
  await step(of('no request was refused for a missing right'), () => nothingForbidden(logs));
}
