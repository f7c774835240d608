/** Removes our finalizers from custom resources, so that they can be deleted without a controller. */
import type { Patch } from '../../kube/api/client.ts';
import { ignoring } from '../../kube/api/errors.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { clusterConfigsPath } from '../../policy/resources/placement.ts';
import type { CleanRun } from './run.ts';

const ours = 'arch.example/';

/** @throws KubeError if custom resources cannot be read */
export async function removeFinalizers(run: CleanRun): Promise<void> {
  const objects = run.list<KubeObject>(clusterConfigsPath());
  const removing = run.each(objects, async (listed) => {
    if (patchOf(listed) === undefined) return;
    const { name = '' } = listed.metadata ?? {};
    const target = { path: clusterConfigsPath(name), listed };
    await run.patch('custom resources', `finalizer of ClusterPodPlacementConfig ${name}`, target, patchOf);
  });
  // The custom resource definitions are not installed.
  await ignoring('not-found', removing);
}

function patchOf({ metadata }: KubeObject): Patch | undefined {
  const { resourceVersion, finalizers = [] } = metadata ?? {};
  const others = finalizers.filter((each) => !each.startsWith(ours));
  if (others.length === finalizers.length) return undefined;
  return { type: 'merge', body: { metadata: { resourceVersion, finalizers: others } } };
}
