/** Takes a scheduling gate, ours where no other is named, off every pod. Gates of others stay, and so does all that was decided for the pod. */
import { KubeError } from '../../kube/api/errors.ts';
import type { KubeObject, Pod } from '../../kube/api/objects.ts';
import { keys } from '../../names/keys.ts';
import type { Cleaning } from './steps.ts';
import { paths } from '../../kube/api/paths.ts';

/**
 * Removes the gates that are there now.
 * @param gate name of the gate; ours by default
 * @returns how many, without those that could not be removed
 * @throws KubeError where pods cannot be listed
 */
export async function removeGates(cleaning: Cleaning, gate: string = keys.gate): Promise<number> {
  let removed = 0;
  // A pod with a node has no gates: the API server refuses to bind one that has.
  const waiting = cleaning.list<Pod>(paths.pods(), { fieldSelector: 'spec.nodeName=' });
  await cleaning.each(waiting, async (pod) => {
    if (gateIndex(pod, gate) < 0) return;
    if (await removeGate(cleaning, pod, gate)) removed += 1;
  });
  return removed;
}

async function removeGate(cleaning: Cleaning, listed: Pod, gate: string): Promise<boolean> {
  const path = podPath(listed);
  const { namespace = '', name = '' } = listed.metadata ?? {};
  let pod: Pod | undefined = listed;
  return cleaning.change('gates', `pod ${namespace}/${name}`, async (client, signal) => {
    pod ??= await client.get<Pod>(path, { signal });
    const index = gateIndex(pod, gate);
    const { resourceVersion } = pod.metadata ?? {};
    // Whatever comes of this try, the next one starts from the pod as it is then.
    pod = undefined;
    if (index < 0) return;
    const body = [
      // A stale version is a clean conflict; a failing `test` could not be told from a broken patch.
      { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
      { op: 'remove', path: `/spec/schedulingGates/${index}` },
    ];
    try {
      await client.patch(path, { type: 'json', body }, { signal });
    } catch (error) {
      // The gate was gone before the version was compared: to be looked at again, as after a conflict.
      if (!(error instanceof KubeError) || error.code !== 'invalid') throw error;
      throw new KubeError('conflict', error.where, error.message, { cause: error });
    }
  });
}

function gateIndex({ spec }: Pod, gate: string): number {
  return spec.schedulingGates?.findIndex(({ name }) => name === gate) ?? -1;
}

/** API path of a pod. */
export function podPath({ metadata }: KubeObject): string {
  const { namespace = '', name = '' } = metadata ?? {};
  return paths.pods(namespace, name);
}
