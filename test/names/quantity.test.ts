/** Quantities, sizes and durations. */
import * as fc from 'fast-check';
import { test } from 'tap';
import {
  formatDuration,
  parseDuration,
  formatBytes,
  parseBytes,
  parseQuantity,
} from '../../src/names/quantity.ts';

test('quantities are parsed as in Kubernetes', async (t) => {
  const cases: [written: unknown, value: number][] = [
    ['0', 0],
    ['2', 2],
    ['500m', 0.5],
    ['250u', 0.00025],
    ['2n', 2e-9],
    ['1.5', 1.5],
    ['.5', 0.5],
    ['1.', 1],
    ['+1', 1],
    ['-1', -1],
    ['1k', 1000],
    ['1M', 1e6],
    ['2G', 2e9],
    ['1T', 1e12],
    ['1P', 1e15],
    ['1E', 1e18],
    ['1Ki', 1024],
    ['128Mi', 134_217_728],
    ['1.5Gi', 1_610_612_736],
    ['1Ti', 2 ** 40],
    ['1Pi', 2 ** 50],
    ['1Ei', 2 ** 60],
    ['1e3', 1000],
    ['1E3', 1000],
    ['12e-1', 1.2],
    ['1e+2', 100],
    [2, 2],
    [0.5, 0.5],
  ];
  for (const [written, value] of cases) t.equal(parseQuantity(written), value, JSON.stringify(written));
  const wrong = [
    '',
    ' 1',
    '1 ',
    'm',
    '.',
    '1K',
    '1ki',
    '1mi',
    '1e',
    '1eGi',
    '1e999',
    '0x10',
    'Infinity',
    'NaN',
    Number.NaN,
    '1'.repeat(65),
    undefined,
    null,
    {},
  ];
  for (const written of wrong) t.equal(parseQuantity(written), undefined, JSON.stringify(written));
});

test('sizes are parsed', async (t) => {
  const cases = { '64Mi': 67_108_864, '1Ki': 1024, '2Gi': 2_147_483_648, '1000': 1000, '0': 0 };
  for (const [text, bytes] of Object.entries(cases)) t.equal(parseBytes(text), bytes, text);
});

test('malformed sizes are refused', async (t) => {
  for (const text of [
    ...'Mi 1.5Mi -1 64M 64MB 64mi 1Ti 1e3 9007199254740993 99999999999Gi'.split(' '),
    '',
    '1 Mi',
    '1\n',
  ]) {
    t.equal(parseBytes(text), undefined, JSON.stringify(text));
  }
});

test('a size is formatted with the largest unit that divides it', async (t) => {
  const cases = { '0': 0, '1': 1, '1536': 1536, '2Ki': 2048, '1Gi': 1_073_741_824 };
  for (const [text, bytes] of Object.entries(cases)) t.equal(formatBytes(bytes), text);
});

test('property: parsing reverses formatting', async () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.constantFrom(1, 1024, 1_048_576),
      (count, unit) => parseBytes(formatBytes(count * unit)) === count * unit,
    ),
  );
});

test('durations are parsed', async (t) => {
  const cases: [string, number][] = [
    ['7d', 604_800_000],
    ['1h30m', 5_400_000],
    ['500ms', 500],
    ['1d2h3m4s5ms', 93_784_005],
    ['90s', 90_000],
    ['1m1ms', 60_001],
    ['0s', 0],
    ['3650d', 315_360_000_000],
  ];
  for (const [text, ms] of cases) t.equal(parseDuration(text), ms, text);
});

test('malformed durations are refused', async (t) => {
  for (const text of [
    ...'7 -1s +1s 1.5h 1H 1w d 30m1h 1h1h 1ms1s 1e3s 3651d 99999999999999999999999d 1h30'.split(' '),
    '',
    ' ',
    '7 d',
    ' 7d',
    '7d ',
    '٣s',
    '1h\n',
  ]) {
    t.equal(parseDuration(text), undefined, JSON.stringify(text));
  }
});

test('durations are formatted in the shortest form', async (t) => {
  const cases = { '0s': 0, '1ms': 1, '1m': 60_000, '1h30m': 5_400_000, '1d1h1m1s1ms': 90_061_001 };
  for (const [text, ms] of Object.entries(cases)) t.equal(formatDuration(ms), text);
});

test('property: parsing reverses formatting', async () => {
  fc.assert(fc.property(fc.nat({ max: 315_360_000_000 }), (ms) => parseDuration(formatDuration(ms)) === ms));
});
