/** Targets that break each rule, for the test of `npm run fuzz`. */
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
  { ...base, name: 'growing', feed: (input) => `${'x'.repeat(100_000)}${'y'.repeat(input.length * 41)}` },
  {
    ...base,
    name: 'verbose',
    feed: (input) => {
      throw new Refused('x'.repeat(10_000 + 3 * input.length));
    },
  },
  { ...base, name: 'silent', feed: () => 1, check: () => Promise.reject(new Error('no answer')) },
];
