import * as fc from 'fast-check';
import t from 'tap';
import { formatBytes, parseBytes } from '../../src/names/bytes.ts';

t.test('sizes', async (t) => {
  const cases: [string, number][] = [
    ['64Mi', 67_108_864],
    ['1Ki', 1024],
    ['2Gi', 2_147_483_648],
    ['1000', 1000],
    ['0', 0],
  ];
  for (const [text, bytes] of cases) t.equal(parseBytes(text), bytes, text);
});

t.test('what is no size', async (t) => {
  for (const text of [
    '',
    'Mi',
    '1.5Mi',
    '-1',
    '1 Mi',
    '64M',
    '64MB',
    '64mi',
    '1Ti',
    '1e3',
    '9007199254740993',
    '99999999999Gi',
    '1\n',
  ]) {
    t.equal(parseBytes(text), undefined, JSON.stringify(text));
  }
});

t.test('written with the largest unit that divides it', async (t) => {
  const cases: [number, string][] = [
    [0, '0'],
    [1, '1'],
    [1536, '1536'],
    [2048, '2Ki'],
    [1_073_741_824, '1Gi'],
  ];
  for (const [bytes, text] of cases) t.equal(formatBytes(bytes), text);
});

t.test('property: what is written is read back', async () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.constantFrom(1, 1024, 1_048_576),
      (count, unit) => parseBytes(formatBytes(count * unit)) === count * unit,
    ),
  );
});
