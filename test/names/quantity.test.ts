import * as fc from 'fast-check';
import t from 'tap';
import { formatBytes, parseBytes, parseQuantity } from '../../src/names/quantity.ts';

t.test('quantities are parsed as in Kubernetes', async (t) => {
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

t.test('sizes are parsed', async (t) => {
  const cases = { '64Mi': 67_108_864, '1Ki': 1024, '2Gi': 2_147_483_648, '1000': 1000, '0': 0 };
  for (const [text, bytes] of Object.entries(cases)) t.equal(parseBytes(text), bytes, text);
});

t.test('malformed sizes are refused', async (t) => {
  for (const text of [
    ...'Mi 1.5Mi -1 64M 64MB 64mi 1Ti 1e3 9007199254740993 99999999999Gi'.split(' '),
    '',
    '1 Mi',
    '1\n',
  ]) {
    t.equal(parseBytes(text), undefined, JSON.stringify(text));
  }
});

t.test('a size is formatted with the largest unit that divides it', async (t) => {
  const cases = { '0': 0, '1': 1, '1536': 1536, '2Ki': 2048, '1Gi': 1_073_741_824 };
  for (const [text, bytes] of Object.entries(cases)) t.equal(formatBytes(bytes), text);
});

t.test('property: parsing reverses formatting', async () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.constantFrom(1, 1024, 1_048_576),
      (count, unit) => parseBytes(formatBytes(count * unit)) === count * unit,
    ),
  );
});
