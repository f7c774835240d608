/** How many nodes of each architecture exist; counted again only after nodes have changed. */
import type { Reflector } from '../../kube/watch/reflector.ts';
import type { CachedNode } from '../caches/cached.ts';

/** @returns the number of nodes of an architecture */
export function createNodeCounts(
  nodes: Pick<Reflector<CachedNode>, 'values' | 'onChange'>,
): (architecture: string) => number {
  let counts: Map<string, number> | undefined;
  nodes.onChange(() => {
    counts = undefined;
  });
  return (wanted) => {
    if (counts === undefined) {
      counts = new Map();
      for (const { architecture } of nodes.values())
        if (architecture !== undefined) counts.set(architecture, (counts.get(architecture) ?? 0) + 1);
    }
    return counts.get(wanted) ?? 0;
  };
}
