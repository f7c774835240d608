/** Texts for people, suggestions for mistakes, hashes of texts; quantities, sizes and durations. */
import * as fc from 'fast-check';
import { test } from 'tap';
import { isArchitectureKey } from '../../src/names/architecture.ts';
import { matchesAny } from '../../src/names/glob.ts';
import { hashOf, hashText } from '../../src/names/hash.ts';
import { boundedWarnings, listed, printable } from '../../src/names/printable.ts';
import {
  formatBytes,
  formatDuration,
  parseBytes,
  parseDuration,
  parseQuantity,
} from '../../src/names/quantity.ts';
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

test('one star stays within a path segment, two do not', async (t) => {
  const matches = (glob: string) => ['a/b', 'a/b/c', 'a.b'].filter((text) => matchesAny([glob], text));
  t.strictSame(matches('a/*'), ['a/b']);
  t.strictSame(matches('a/**'), ['a/b', 'a/b/c']);
  t.strictSame(matches('a.*'), ['a.b']);
  t.notOk(matchesAny([], ''));
});

test('both labels of the architecture are known', async (t) => {
  const keys = ['kubernetes.io/arch', 'beta.kubernetes.io/arch', 'kubernetes.io/os'];
  t.strictSame(keys.filter(isArchitectureKey), ['kubernetes.io/arch', 'beta.kubernetes.io/arch']);
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

test('the nearest word is suggested', async (t) => {
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
  // Two letters may be swapped, unless the word is short.
  t.equal(suggestionFor('abdc', ['ab', 'abcd']), 'abcd');
  t.equal(suggestionFor('ba', ['ab']), undefined);
  t.equal(suggestionFor('badc', ['abcd']), undefined, 'two swaps');
  // The nearer candidate wins in any order.
  t.equal(suggestionFor('proxis', ['proxied', 'proxies']), 'proxies');
  t.equal(suggestionFor('proxis', ['proxies', 'proxied']), 'proxies');
  t.equal(didYouMean('chekc', ['check', 'print']), '; did you mean check?');
  t.equal(didYouMean('other', ['check', 'print']), '');
  // Found by fuzzing: the time grew with the length of the word and the number of candidates.
  t.equal(suggestionFor(`listen${'n'.repeat(1_000_000)}`, ['listen', 'logLevel']), undefined);
});

test('in hashes, order and boundaries of texts count', async (t) => {
  for (const hash of [hashOf, hashText]) {
    t.equal(hash(['a', 'b']), hash(['a', 'b']));
    t.not(hash(['a', 'b']), hash(['b', 'a']));
    t.not(hash(['ab']), hash(['a', 'b']));
    t.not(hash(['a', '']), hash(['a']));
  }
});

test('quantities are parsed as in Kubernetes', async (t) => {
  const cases: [written: unknown, value: number][] = [
    ['0', 0],
    ['500m', 0.5],
    ['250u', 0.00025],
    ['2n', 2e-9],
    ['1.5', 1.5],
    ['.5', 0.5],
    ['1.', 1],
    ['+1', 1],
    ['-1', -1],
    ['1.5Gi', 1_610_612_736],
    ['1e3', 1000],
    ['1E3', 1000],
    ['12e-1', 1.2],
    ['1e+2', 100],
    [0.5, 0.5],
  ];
  for (const [written, value] of cases) t.equal(parseQuantity(written), value, JSON.stringify(written));
  for (const [power, unit] of ['', 'k', 'M', 'G', 'T', 'P', 'E'].entries()) {
    t.equal(parseQuantity(`2${unit}`), 2 * 1000 ** power, unit);
    if (unit !== '') t.equal(parseQuantity(`1${unit.toUpperCase()}i`), 1024 ** power, unit);
  }
  const texts = '. m 1K 1ki 1mi 1e 1eGi 1e999 0x10 Infinity NaN'.split(' ');
  const wrong = [...texts, '', ' 1', '1 ', Number.NaN, '1'.repeat(65), undefined, null, {}];
  for (const written of wrong) t.equal(parseQuantity(written), undefined, JSON.stringify(written));
});

interface Kind {
  readonly parse: (text: string) => number | undefined;
  readonly format: (value: number) => string;
  readonly parsed: Readonly<Record<string, number>>;
  readonly refused: readonly string[];
  readonly formatted: Readonly<Record<string, number>>;
  readonly values: fc.Arbitrary<number>;
}

/** Bytes and milliseconds. A value is formatted with the largest units that divide it. */
const kinds: Readonly<Record<string, Kind>> = {
  sizes: {
    parse: parseBytes,
    format: formatBytes,
    parsed: { '64Mi': 67_108_864, '1Ki': 1024, '2Gi': 2_147_483_648, '1000': 1000, '0': 0 },
    refused: [
      ...'Mi 1.5Mi -1 64M 64MB 64mi 1Ti 1e3 9007199254740993 99999999999Gi'.split(' '),
      '',
      '1 Mi',
      '1\n',
    ],
    formatted: { '0': 0, '1': 1, '1536': 1536, '2Ki': 2048, '1Gi': 1_073_741_824 },
    values: fc.tuple(fc.nat(), fc.constantFrom(1, 1024, 1_048_576)).map(([count, unit]) => count * unit),
  },
  durations: {
    parse: parseDuration,
    format: formatDuration,
    parsed: {
      '7d': 604_800_000,
      '1h30m': 5_400_000,
      '500ms': 500,
      '1d2h3m4s5ms': 93_784_005,
      '90s': 90_000,
      '1m1ms': 60_001,
      '0s': 0,
      '3650d': 315_360_000_000,
    },
    refused: [
      ...'7 -1s +1s 1.5h 1H 1w d 30m1h 1h1h 1ms1s 1e3s 3651d 99999999999999999999999d 1h30'.split(' '),
      '',
      ' ',
      '7 d',
      ' 7d',
      '7d ',
      '٣s',
      '1h\n',
    ],
    formatted: { '0s': 0, '1ms': 1, '1m': 60_000, '1h30m': 5_400_000, '1d1h1m1s1ms': 90_061_001 },
    values: fc.nat({ max: 315_360_000_000 }),
  },
};

for (const [name, { parse, format, parsed, refused, formatted, values }] of Object.entries(kinds)) {
  test(`${name} are parsed and formatted, malformed ones refused`, async (t) => {
    for (const [text, value] of Object.entries(parsed)) t.equal(parse(text), value, text);
    for (const text of refused) t.equal(parse(text), undefined, JSON.stringify(text));
    for (const [text, value] of Object.entries(formatted)) t.equal(format(value), text);
    fc.assert(fc.property(values, (value) => parse(format(value)) === value));
  });
}
