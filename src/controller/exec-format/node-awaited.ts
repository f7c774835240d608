/**
 * Pods whose node is not known. Pods and nodes come by different watches, in any order, so a node usually comes at once; one that
 * does not is gone, and its pods are looked at again only when they change.
 */

export interface NodeAwaited {
  /** How long to wait before the next look at a pod, milliseconds; undefined where its node is not waited for any longer. */
  next(key: string): number | undefined;
  /** The node is known, or the pod changed. */
  forget(key: string): void;
}

/** Half a minute altogether. */
const looks = { firstMs: 500, most: 6 };

export function createNodeAwaited(): NodeAwaited {
  const times = new Map<string, number>();
  return {
    next: (key) => {
      const before = times.get(key) ?? 0;
      if (before >= looks.most) return undefined;
      times.set(key, before + 1);
      return looks.firstMs * 2 ** before;
    },
    forget: (key) => void times.delete(key),
  };
}
