/** Texts for people, suggestions for mistakes, hashes of texts. */
import * as fc from 'fast-check';
import t, { test } from 'tap';
import { hashOf, hashText } from '../../src/names/hash.ts';
import { boundedWarnings, listed, printable } from '../../src/names/printable.ts';
import { didYouMean, suggestionFor } from '../../src/names/suggestion.ts';
import { settings } from '../../src/policy/settings/all.ts';

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

t.test('the nearest setting is suggested', async (t) => {
  const cases: [string, string | undefined][] = [
    ['schedulableArchitekture', 'schedulableArchitectures'],
    ['schedulablearchitectures', 'schedulableArchitectures'],
    ['inlineBugdet', 'inlineBudget'],
    ['listn', 'listen'],
    ['lsiten', 'listen'],
    ['prefered', 'preferredArchitecture'],
    ['agent', 'agents'],
    ['logLevel', 'logLevel'],
    ['somethingElse', undefined],
    ['age', 'agents'],
    ['ag', undefined],
    ['x', undefined],
    ['', undefined],
  ];
  for (const [word, expected] of cases) t.equal(suggestionFor(word, Object.keys(settings)), expected, word);
});

t.test('two letters may be swapped, unless the word is short', async (t) => {
  t.equal(suggestionFor('abdc', ['ab', 'abcd']), 'abcd');
  t.equal(suggestionFor('ba', ['ab']), undefined);
  t.equal(suggestionFor('badc', ['abcd']), undefined, 'two swaps');
});

t.test('the nearer candidate wins in any order', async (t) => {
  t.equal(suggestionFor('proxis', ['proxied', 'proxies']), 'proxies');
  t.equal(suggestionFor('proxis', ['proxies', 'proxied']), 'proxies');
});

t.test('a suggestion is formatted as the end of a message', async (t) => {
  t.equal(didYouMean('chekc', ['check', 'print']), '; did you mean check?');
  t.equal(didYouMean('other', ['check', 'print']), '');
});

t.test('a very long word is skipped', async (t) => {
  // Found by fuzzing: the time grew with the length of the word and the number of candidates.
  t.equal(suggestionFor(`listen${'n'.repeat(1_000_000)}`, ['listen', 'logLevel']), undefined);
});

for (const hash of [hashOf, hashText]) {
  test(`${hash.name}: order and boundaries of texts count`, async (t) => {
    t.equal(hash(['a', 'b']), hash(['a', 'b']));
    t.not(hash(['a', 'b']), hash(['b', 'a']));
    t.not(hash(['ab']), hash(['a', 'b']));
    t.not(hash(['a', '']), hash(['a']));
  });
}
