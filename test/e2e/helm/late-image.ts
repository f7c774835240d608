/** A single-architecture cluster without archwright's image: no pod is delayed. With the image, all works. */
import assert from 'node:assert/strict';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { chart } from '../chart/helm.ts';
import { checkRemoval, expectNothingForbidden } from './leaving.ts';
import { steadyListing } from '../cluster/control-plane/listing.ts';
import type { Followed } from './logs.ts';
import { untilWebhooksInForce, untilReady, webhookConfiguration } from './parts.ts';
import type { PodNow } from '../cluster/control-plane/pods.ts';
import { deletePods, isPlaced, podOf, runningPod, nodeArchitectureOf } from './pods.ts';
import { namespace, type Helm } from './release.ts';
import { step } from './report.ts';
import { releaseValues, type World } from './world.ts';

export async function lateImage(world: World, helm: Helm, logs: Followed): Promise<void> {
  const { cluster, image, own } = world;
  const of = (name: string): string => `${helm.name}: ${name}`;
  for (const name of ['arm64-0', 's390x-0']) await cluster.delete(`/api/v1/nodes/${name}`);
  // The real one takes 110 pods.
  await cluster.createNodes([{ name: 'amd64-0', architecture: 'amd64', pods: 5000 }]);
  const before = await steadyListing(cluster);
  const card = releaseValues(world);
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
    const pod = await cluster.create<Pod>(podOf({ name: 'meanwhile', images: [image('public/multi')] }));
    assert(!isPlaced(pod), 'skipped');
    const { webhooks } = await cluster.get<{ webhooks?: unknown }>(webhookConfiguration);
    assert.deepEqual(webhooks ?? [], [], 'the API server calls no webhook');
    await runningPod(cluster, 'meanwhile');
    await deletePods(cluster, ['meanwhile']);
  });
  await step(of('the upgrade to an existing image repairs it'), async () => {
    await helm.run('upgrade', 'archwright', chart, helm.values('card', card), '--wait', '--timeout', '3m');
    await untilReady(cluster);
    await untilWebhooksInForce(cluster);
  });
  await step(of('pods of a cluster of one architecture run'), async () => {
    const wanted = ['public/multi', 'public/intel', 'plugin/multi'] as const;
    for (const [index, name] of wanted.entries())
      await cluster.create(podOf({ name: `single-${index}`, images: [image(name)] }));
    for (const index of wanted.keys())
      assert.equal(await nodeArchitectureOf(cluster, `single-${index}`), 'amd64');
    await deletePods(
      cluster,
      [...wanted.keys()].map((index) => `single-${index}`),
    );
  });
  await checkRemoval(world, helm, before);
  await step(of('no request was refused for a missing right'), () => expectNothingForbidden(logs));
}
