/** Targets that are as bad as targets can be, for the test of what feeds them. */
import type { FuzzTarget } from '../support/fuzz/target.ts';

class Refused extends Error {}

const base = { examples: ['{"good":1}'], words: ['a', 'b'], expected: [Refused] };

export const targets: readonly FuzzTarget[] = [
  { ...base, name: 'good', feed: () => 1 },
  {
    ...base,
    name: 'refusing',
    feed: () => {
      throw new Refused('never good enough');
    },
  },
  {
    ...base,
    name: 'crashing',
    feed: (input) => {
      if (input.includes('b')) throw new TypeError('b was not expected');
    },
  },
  { ...base, name: 'rejecting', feed: () => Promise.reject(new RangeError('later')) },
  {
    ...base,
    name: 'hanging',
    feed: () => {
      for (;;);
    },
  },
  {
    ...base,
    name: 'hoarding',
    feed: () => {
      const held: unknown[] = [];
      for (;;) held.push(Array.from({ length: 10_000 }, () => ({})));
    },
  },
];
