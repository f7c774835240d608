/**
 * A cache of at most 2 × `size` values in two generations: new values and used old ones go into the young generation; when that is
 * full it becomes the old one, and what was left in the old one is forgotten. A hit allocates nothing.
 */
export interface Generations<Value> {
  get(key: string): Value | undefined;
  set(key: string, value: Value): void;
}

export function createGenerations<Value>(size: number): Generations<Value> {
  let young = new Map<string, Value>();
  let old = new Map<string, Value>();

  function set(key: string, value: Value): void {
    if (young.size >= size && !young.has(key)) {
      old = young;
      young = new Map();
    }
    young.set(key, value);
  }

  return {
    get: (key) => {
      const value = young.get(key);
      if (value !== undefined) return value;
      const older = old.get(key);
      if (older !== undefined) set(key, older);
      return older;
    },
    set,
  };
}
