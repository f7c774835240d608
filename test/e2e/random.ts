/** Random choices from a seed: the same seed makes the same cases. */
export type Random = ReturnType<typeof createRandom>;

/** @param seed any whole number; 32 bits of it count */
export function createRandom(seed: number) {
  let state = seed >>> 0;
  /** Mulberry32: small, and good enough to choose cases. */
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  const below = (limit: number): number => Math.floor(next() * limit);
  function pick<Item>(items: readonly Item[]): Item {
    const item = items[below(items.length)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }
  return {
    /** Whole number from 0 up to, not including, `limit`. */
    below,
    chance: (probability: number): boolean => next() < probability,
    pick,
    weighted: <Item>(items: readonly (readonly [weight: number, item: Item])[]): Item => {
      let left = next() * items.reduce((sum, [weight]) => sum + weight, 0);
      for (const [weight, item] of items) {
        left -= weight;
        if (left < 0) return item;
      }
      return pick(items)[1];
    },
    /** Some of the items in random order, none twice. */
    some: <Item>(items: readonly Item[], count: number): Item[] => {
      const rest = [...items];
      const taken: typeof rest = [];
      while (taken.length < count && rest.length > 0) taken.push(...rest.splice(below(rest.length), 1));
      return taken;
    },
  };
}

/** The seed of this run: `E2E_SEED`, by default a random one. A suite prints it. */
export function seedOfRun(preset = Math.floor(Math.random() * 2 ** 31)): number {
  return numberFrom('E2E_SEED', preset);
}

/** The number of generated cases of this run: `E2E_CASES`. */
export function casesOfRun(preset: number): number {
  return numberFrom('E2E_CASES', preset);
}

/** An empty variable counts as unset. */
function numberFrom(variable: string, preset: number): number {
  const text = process.env[variable] ?? '';
  if (text !== '' && !/^\d+$/.test(text)) throw new Error(`${variable} is not a whole number: ${text}`);
  return text === '' ? preset : Number(text);
}
