/** Removes taints from nodes. */
import type { Patch } from '../../kube/api/client.ts';
import type { Node } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import type { CleanRun } from './run.ts';

/**
 * @param patchOf the patch that removes the taints from a node; `undefined`: it has none of them
 * @throws KubeError if nodes cannot be listed
 */
export async function removeTaints(run: CleanRun, patchOf: (node: Node) => Patch | undefined): Promise<void> {
  await run.each(run.list<Node>(paths.nodes()), async (listed) => {
    if (patchOf(listed) === undefined) return;
    const name = listed.metadata?.name ?? '';
    await run.patch('taints', `taint of node ${name}`, { path: paths.nodes(name), listed }, patchOf);
  });
}
