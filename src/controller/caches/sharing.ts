/**
 * One copy of equal values of many objects. The pods of a workload have the same labels, tolerations and images, each parsed
 * from its own bytes; without sharing they would be most of the memory.
 */

/** Returns a value equal to the given one: the same object for equal values, as long as it is remembered. */
export type Share = <T>(value: T) => T;

/** Enough for the workloads, nodes and images of a large cluster, and 30 MB at worst; beyond it sharing begins anew. */
const defaultMaxValues = 20_000;

/** Shared values must never change, so they are frozen. */
export function createSharing(maxValues = defaultMaxValues): Share {
  const known = new Map<string, unknown>();
  return <T>(value: T): T => {
    if (value === undefined || value === null) return value;
    const key = typeof value === 'string' ? `"${value}` : JSON.stringify(value);
    const found = known.get(key);
    if (found !== undefined) return found as T;
    if (known.size >= maxValues) known.clear();
    known.set(key, frozen(value));
    return value;
  };
}

function frozen(value: unknown): unknown {
  if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) frozen(part);
    Object.freeze(value);
  }
  return value;
}
