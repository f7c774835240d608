/**
 * One copy of equal values of many objects. Pods of a workload have the same labels, tolerations and images,
 * each parsed from its own bytes. Without sharing, these would be most of the memory.
 */

/** Returns a value equal to the given one: the same object for equal values, as long as it is remembered. */
export type Share = <T>(value: T) => T;

/** Enough for the workloads, nodes and images of a large cluster; beyond it sharing begins anew. */
const defaultMaxValues = 20_000;
/** All keys together. The values of a large cluster have a few hundred characters each. */
const maxCharacters = 8 * 1024 * 1024;
/** A longer value would stay in memory after its pods. */
const maxLength = 4096;

/** Shared values must never change, so they are frozen. */
export function createSharing(maxValues = defaultMaxValues): Share {
  const known = new Map<string, unknown>();
  let characters = 0;
  return <T>(value: T): T => {
    if (value === undefined || value === null) return value;
    const key = typeof value === 'string' ? `"${value}` : JSON.stringify(value);
    const found = known.get(key);
    if (found !== undefined) return found as T;
    if (key.length > maxLength) return value;
    if (known.size >= maxValues || characters + key.length > maxCharacters) {
      known.clear();
      characters = 0;
    }
    characters += key.length;
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
