import * as fc from 'fast-check';
import t from 'tap';
import { formatDuration, parseDuration } from '../../src/names/duration.ts';

t.test('durations are parsed', async (t) => {
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

t.test('malformed durations are refused', async (t) => {
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

t.test('durations are formatted in the shortest form', async (t) => {
  const cases = { '0s': 0, '1ms': 1, '1m': 60_000, '1h30m': 5_400_000, '1d1h1m1s1ms': 90_061_001 };
  for (const [text, ms] of Object.entries(cases)) t.equal(formatDuration(ms), text);
});

t.test('property: parsing reverses formatting', async () => {
  fc.assert(fc.property(fc.nat({ max: 315_360_000_000 }), (ms) => parseDuration(formatDuration(ms)) === ms));
});
