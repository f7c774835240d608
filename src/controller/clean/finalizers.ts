/** Takes our finalizers off the custom resources, so that they can be deleted when no controller is there any more. */
import { KubeError } from '../../kube/api/errors.ts';
import type { KubeObject, ObjectMeta } from '../../kube/api/objects.ts';
import { clusterConfigsPath } from '../../policy/resources/placement.ts';
import type { Cleaning } from './steps.ts';

interface Finalized extends KubeObject {
  readonly metadata?: ObjectMeta & { readonly finalizers?: readonly string[] };
}

const ours = 'arch.example/';

/** @throws KubeError where custom resources cannot be read */
export async function removeFinalizers(cleaning: Cleaning): Promise<void> {
  try {
    for await (const object of cleaning.list<Finalized>(clusterConfigsPath())) {
      if (finalizersOf(object).some(isOurs)) await release(cleaning, object.metadata?.name ?? '');
    }
  } catch (error) {
    // Their definitions are not installed.
    if (!(error instanceof KubeError) || error.code !== 'not-found') throw error;
  }
}

async function release(cleaning: Cleaning, name: string): Promise<void> {
  const path = clusterConfigsPath(name);
  const what = `finalizer of ClusterPodPlacementConfig ${name}`;
  await cleaning.change('custom resources', what, async (client, signal) => {
    const object = await client.get<Finalized>(path, { signal });
    const finalizers = finalizersOf(object);
    if (!finalizers.some(isOurs)) return;
    const { resourceVersion } = object.metadata ?? {};
    const body = { metadata: { resourceVersion, finalizers: finalizers.filter((each) => !isOurs(each)) } };
    await client.patch(path, { type: 'merge', body }, { signal });
  });
}

function finalizersOf({ metadata }: Finalized): readonly string[] {
  return metadata?.finalizers ?? [];
}

function isOurs(finalizer: string): boolean {
  return finalizer.startsWith(ours);
}
