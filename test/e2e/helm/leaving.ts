/** The end of a release: its pods go, those of others stay as they are, and nothing else is left of it. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { patience } from '../cluster/harness.ts';
import { waitFor } from '../cluster/watch.ts';
import { differences, listEverything, type Listing } from './listing.ts';
import { refused, type Followed } from './logs.ts';
import { deletePods, isGated, isPlaced, pathOfPod, podOf, runningPod } from './pods.ts';
import type { Helm } from './release.ts';
import { step } from './report.ts';
import { duringStream } from './stream.ts';
import type { World } from './world.ts';

/** Uninstalls, and compares everything that is there with what was. */
export async function leaving(world: World, helm: Helm, before: Listing): Promise<void> {
  const { cluster, images } = world;
  const { client } = cluster;
  await cluster.create(podOf({ name: 'stays', images: [images['plugin/multi'] ?? ''] }));
  const stays = await runningPod(cluster, 'stays');
  assert(isPlaced(stays), 'placed by archwright');
  await gated(world, 'waits');

  await duringStream(world, `${helm.name}: uninstall`, () =>
    helm.run('uninstall', 'archwright', '--wait', '--timeout', '2m'),
  );
  await step(`${helm.name}: a gated pod is let go, a placed one runs on`, async () => {
    const open = await waitFor<Pod>(
      client,
      pathOfPod('waits'),
      (pod) => !isGated(pod) && pod?.spec.nodeName !== undefined,
    );
    assert(open !== undefined);
    const now = await client.get<Pod>(pathOfPod('stays'), { signal: patience() });
    assert.equal(now.metadata?.uid, stays.metadata?.uid);
    assert.deepEqual(now.spec, stays.spec);
    assert(isPlaced(now), 'the decision can still be read');
    await deletePods(cluster, ['waits', 'stays']);
  });
  await sameAsBefore(world, helm, before);
}

/** Makes a pod that is gated. Pods are gated only while a controller leads, and one that crashed leads for 15 s more. */
export async function gated({ cluster, registries }: World, name: string): Promise<void> {
  const until = performance.now() + 30_000;
  for (;;) {
    const pod = await cluster.create<Pod>(podOf({ name, images: [`${registries.goneHost}/other:1`] }));
    if (isGated(pod)) return;
    assert(performance.now() < until, 'gated by archwright');
    await deletePods(cluster, [name]);
    await pause(500);
  }
}

export async function sameAsBefore(
  { cluster }: World,
  helm: { readonly name: string },
  before: Listing,
): Promise<void> {
  await step(`${helm.name}: everything is as it was before, byte for byte`, async () => {
    // Endpoints, and definitions in the API server's own listing, go a moment after what they belong to.
    for (let tries = 0; ; tries += 1) {
      const found = differences(before, await listEverything(cluster.client));
      if (found.length === 0) return;
      if (tries === 30) assert.fail(found.join('\n'));
      await pause(1_000);
    }
  });
}

/** The API server refused nothing, and none of the three complains. */
export function nothingForbidden(logs: Followed): void {
  assert.deepEqual(refused(), []);
  assert.notEqual(logs.text(), '', 'they said something');
  const complaints = logs
    .text()
    .split('\n')
    .filter((line) => /forbidden/i.test(line));
  assert.deepEqual(complaints, []);
}
