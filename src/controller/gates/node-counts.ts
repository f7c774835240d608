/** How many nodes of each architecture there are; counted again after nodes have changed, not for each question. */
import type { Reflector } from '../../kube/watch/reflector.ts';
import type { CachedNode } from '../caches/caches.ts';

export interface NodeCounts {
  of(architecture: string): number;
}

export function createNodeCounts(nodes: Pick<Reflector<CachedNode>, 'values' | 'onChange'>): NodeCounts {
  let counts: Map<string, number> | undefined;
  nodes.onChange(() => {
    counts = undefined;
  });
  return {
    of: (wanted) => {
      if (counts === undefined) {
        counts = new Map();
        for (const { architecture } of nodes.values())
          if (architecture !== undefined) counts.set(architecture, (counts.get(architecture) ?? 0) + 1);
      }
      return counts.get(wanted) ?? 0;
    },
  };
}
