/** The end of a release: its pods go, pods of users stay as they are, and nothing else is left. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { deleteKeptDefinitions } from '../cluster/control-plane/definitions.ts';
import { differencesFrom, type Listing } from '../cluster/control-plane/listing.ts';
import { refused, type Followed } from './logs.ts';
import { isGated, podPath } from '../cluster/control-plane/pods.ts';
import { deletePods, whileCreatingPods, isPlaced, podOf, runningPod } from './pods.ts';
import type { Helm } from './release.ts';
import { step } from './report.ts';
import type { World } from './world.ts';

export async function checkRemoval(world: World, helm: Helm, before: Listing): Promise<void> {
  const { cluster, image } = world;
  await cluster.create(podOf({ name: 'stays', images: [image('plugin/multi')] }));
  const stays = await runningPod(cluster, 'stays');
  assert(isPlaced(stays), 'placed by archwright');
  await createGated(world, 'waits');

  await whileCreatingPods(world, `${helm.name}: uninstall`, () =>
    helm.run('uninstall', 'archwright', '--wait', '--timeout', '2m'),
  );
  await step(`${helm.name}: a gated pod is ungated, a placed one stays`, async () => {
    const open = await cluster.waitFor<Pod>(
      podPath('waits'),
      (pod) => !isGated(pod) && pod?.spec.nodeName !== undefined,
    );
    assert(open !== undefined);
    const now = await cluster.get<Pod>(podPath('stays'));
    assert.equal(now.metadata?.uid, stays.metadata?.uid);
    assert.deepEqual(now.spec, stays.spec);
    assert(isPlaced(now), 'the decision record stays');
    await deletePods(cluster, ['waits', 'stays']);
  });
  await expectSameAsBefore(world, helm, before);
}

/** Makes a gated pod. Only with a leading controller; a crashed one keeps its Lease for 15 s more. */
export async function createGated({ cluster, registries }: World, name: string): Promise<void> {
  const until = performance.now() + 120_000;
  for (;;) {
    const pod = await cluster.create<Pod>(podOf({ name, images: [`${registries.goneHost}/other:1`] }));
    if (isGated(pod)) return;
    assert(performance.now() < until, 'gated by archwright');
    await deletePods(cluster, [name]);
    await pause(500);
  }
}

export async function expectSameAsBefore(
  { cluster }: World,
  helm: { readonly name: string },
  before: Listing,
): Promise<void> {
  if (helm.name !== 'kubectl') {
    await step(`${helm.name}: the definitions of the custom resources are kept`, () =>
      deleteKeptDefinitions(cluster),
    );
  }
  await step(`${helm.name}: everything is as it was before, byte for byte`, async () => {
    assert.deepEqual(await differencesFrom(cluster, before), []);
  });
}

/** The API server refused nothing for missing rights, and no component logs such an error. */
export function expectNothingForbidden(logs: Followed): void {
  assert.deepEqual(refused(), []);
  assert.notEqual(logs.text(), '', 'there are log lines');
  const complaints = logs
    .text()
    .split('\n')
    // Not rights: archwright itself refuses this registry; Pod Security refuses agents.
    .filter(
      (line) => /forbidden/i.test(line) && !/"image":"gone\.example:9\/|violates PodSecurity/.test(line),
    );
  assert.deepEqual(complaints, []);
}
