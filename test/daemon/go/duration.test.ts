import * as fc from 'fast-check';
import t from 'tap';
import { formatGoDuration, parseGoDuration } from '../../../daemon/go.ts';

t.test('durations in the syntax of Go', async (t) => {
  const cases: [string, number | undefined][] = [
    ['0', 0],
    ['+0', 0],
    ['0s', 0],
    ['10m', 600_000],
    ['1h30m', 5_400_000],
    ['1.5s', 1500],
    ['.5s', 500],
    ['1.s', 1000],
    ['100ms', 100],
    ['1us', 0.001],
    ['1µs', 0.001],
    ['1μs', 0.001],
    ['1ns', 0.000_001],
    ['-1m', -60_000],
    ['+5s', 5000],
    ['1m1m', 120_000],
    ['2562047h', 9_223_369_200_000],
    ['', undefined],
    ['10', undefined],
    ['-', undefined],
    ['.s', undefined],
    ['1d', undefined],
    ['1 m', undefined],
    ['1M', undefined],
    ['1m-1s', undefined],
    ['1e3s', undefined],
    ['2562048h', undefined],
  ];
  for (const [text, expected] of cases) t.equal(parseGoDuration(text), expected, text);
});

t.test('and as Go prints them', async (t) => {
  const cases: [number, string][] = [
    [0, '0s'],
    [-60_000, '-1m0s'],
    [1500, '1.5s'],
    [100, '100ms'],
    [0.5, '500µs'],
    [0.0001, '100ns'],
    [3_600_000, '1h0m0s'],
    [3_661_001, '1h1m1.001s'],
  ];
  for (const [ms, expected] of cases) t.equal(formatGoDuration(ms), expected);
});

t.test('property: what is printed reads back', async (t) => {
  fc.assert(
    fc.property(fc.integer({ min: -1e12, max: 1e12 }), (ms) => {
      t.equal(parseGoDuration(formatGoDuration(ms)), ms === 0 ? 0 : ms);
    }),
    { numRuns: 200 },
  );
});
