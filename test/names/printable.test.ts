import * as fc from 'fast-check';
import { test } from 'tap';
import { boundedWarnings, listed, printable } from '../../src/names/printable.ts';

const cases: readonly (readonly [text: string, max: number, printed: string])[] = [
  ['plain', 10, 'plain'],
  ['exactly-10', 10, 'exactly-10'],
  ['exactly-11!', 10, 'exactly...'],
  ['a\nb\u001b[31m', 20, 'a?b?[31m'],
  ['right-to-left \u202e', 30, 'right-to-left ?'],
  ['line\u2028break', 30, 'line?break'],
  ['é', 2, 'é'],
  ['ééééé', 9, 'ééé...'],
  ['\ud800', 10, '?'],
  ['😀😀😀', 11, '😀😀...'],
];

test('control characters are replaced', async (t) => {
  for (const [text, max, printed] of cases) t.equal(printable(text, max), printed);
});

test('property: every printable text is bounded and clean', async (t) => {
  const property = fc.property(
    fc.string({ unit: 'binary' }),
    fc.integer({ min: 3, max: 50 }),
    (text, max) => {
      const printed = printable(text, max);
      return Buffer.byteLength(printed) <= max && !/[\p{C}\p{Zl}\p{Zp}]/u.test(printed);
    },
  );
  t.doesNotThrow(() => fc.assert(property, { numRuns: 200 }));
});

test('warnings are few and short', async (t) => {
  t.strictSame(boundedWarnings([]), []);
  const eight = Array.from({ length: 8 }, (_, index) => `w${index}`);
  t.strictSame(boundedWarnings(eight), eight);
  t.strictSame(boundedWarnings([...eight, 'w8']), [...eight.slice(0, 7), 'archwright: 2 more warnings']);
  t.equal(Buffer.byteLength(boundedWarnings(['é'.repeat(500)])[0] ?? ''), 255);
});

test('a list is truncated to the items that fit', async (t) => {
  const describe = (item: string): string => item;
  t.equal(listed([], describe, 10), '');
  t.equal(listed(['a', 'b'], describe, 10), 'a; b');
  t.equal(listed(['aaa', 'bbb', 'ccc'], describe, 8), 'aaa; bbb; and 1 more');
  t.equal(listed(['aaaa', 'b'], describe, 3), 'and 2 more');
});
