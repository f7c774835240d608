/** Removes a scheduling gate from every pod. Other gates stay, and so does the placement of the pod. */
import { guardedPatch } from '../../kube/api/change.ts';
import type { Patch } from '../../kube/api/client.ts';
import type { Pod } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import type { CleanRun } from './run.ts';

/**
 * Removes the gates that are there now.
 * @param gate name of the gate
 * @returns how many were removed
 * @throws KubeError if pods cannot be listed
 */
export async function removeGates(run: CleanRun, gate: string): Promise<number> {
  let removed = 0;
  const patchOf = (pod: Pod): Patch | undefined => {
    const index = pod.spec.schedulingGates?.findIndex(({ name }) => name === gate) ?? -1;
    return index < 0
      ? undefined
      : guardedPatch(pod, [{ op: 'remove', path: `/spec/schedulingGates/${index}` }]);
  };
  // A pod with a node has no gates: the API server refuses to bind one that has.
  const waiting = run.list<Pod>(paths.pods(), { fieldSelector: 'spec.nodeName=' });
  await run.each(waiting, async (listed) => {
    if (patchOf(listed) === undefined) return;
    const { namespace = '', name = '' } = listed.metadata ?? {};
    const target = { path: paths.pods(namespace, name), listed };
    if (await run.patch('gates', `pod ${namespace}/${name}`, target, patchOf)) removed += 1;
  });
  return removed;
}
