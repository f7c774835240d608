/** Puts the taint on a node or takes it off: read, patch what was read, begin anew where somebody was faster. */
import type { KubeClient } from '../../kube/api/client.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { Node, Taint } from '../../kube/api/objects.ts';
import { taintPatch } from './own-taint.ts';
import { paths } from '../../kube/api/paths.ts';

export interface ChangeNodeOptions {
  readonly client: KubeClient;
  readonly signal: AbortSignal;
  /** Keys of the settings, for `ownTaints`. */
  readonly keys: readonly string[];
}

/** A kubelet writes its node's status every few seconds at most. */
const tries = 5;

/**
 * Makes the taints of a node right.
 * @param wanted what the node as it is now shall have; `undefined`: nothing of ours
 * @returns whether anything was changed; a node that is gone needs no change
 * @throws KubeError
 */
export async function changeNode(
  name: string,
  wanted: (node: Node) => Taint | undefined,
  { client, signal, keys }: ChangeNodeOptions,
): Promise<boolean> {
  const path = paths.nodes(name);
  for (let left = tries; ; left -= 1) {
    try {
      const node = await client.get<Node>(path, { signal });
      const patch = taintPatch(node, wanted(node), keys);
      if (patch === undefined) return false;
      await client.patch(path, patch, { signal });
      return true;
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      if (error.code === 'not-found') return false;
      if (error.code !== 'conflict' || left === 1) throw error;
    }
  }
}
