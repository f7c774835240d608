import t from 'tap';
import type { PullPolicy } from '../../../src/images/facts/facts.ts';
import {
  confirmedAt,
  defaultFreshness,
  freshnessOf,
  freshUntil,
  type Freshness,
  type FreshnessSettings,
} from '../../../src/images/memory/freshness.ts';
import { day, hour, minute } from '../support.ts';

const now = Date.parse('2026-11-21T12:00:00Z');

t.test('facts are fresh, due or expired by age, pull policy and settings', async (t) => {
  const always: FreshnessSettings = { ...defaultFreshness, pullAlwaysCacheTimeMs: minute };
  const longInterval: FreshnessSettings = { ifNotPresentCacheTimeMs: hour, revalidateIntervalMs: 2 * hour };
  const cases: [number, boolean, PullPolicy, FreshnessSettings, Freshness][] = [
    [0, false, 'IfNotPresent', defaultFreshness, 'fresh'],
    [15 * minute - 1, false, 'IfNotPresent', defaultFreshness, 'fresh'],
    [15 * minute, false, 'IfNotPresent', defaultFreshness, 'due'],
    [15 * minute, false, 'Never', defaultFreshness, 'due'],
    [7 * day - 1, false, 'IfNotPresent', defaultFreshness, 'due'],
    [7 * day, false, 'IfNotPresent', defaultFreshness, 'expired'],
    [7 * day, false, 'Never', defaultFreshness, 'expired'],
    [0, false, 'Always', defaultFreshness, 'expired'],
    [0, false, 'Always', { ...always, pullAlwaysCacheTimeMs: 0 }, 'expired'],
    [minute - 1, false, 'Always', always, 'fresh'],
    [minute, false, 'Always', always, 'expired'],
    [400 * day, true, 'Always', defaultFreshness, 'fresh'],
    [400 * day, true, 'IfNotPresent', defaultFreshness, 'fresh'],
    [hour - 1, false, 'IfNotPresent', longInterval, 'fresh'],
    [hour, false, 'IfNotPresent', longInterval, 'expired'],
  ];
  for (const [age, byDigest, policy, settings, expected] of cases) {
    t.equal(freshnessOf(age, byDigest, policy, settings), expected, `${age} ${byDigest} ${policy}`);
  }
});

t.test('confirmedAt is the inverse of freshUntil', async (t) => {
  for (const byDigest of [true, false]) {
    const written = freshUntil(now - minute, byDigest, defaultFreshness);
    t.equal(confirmedAt(written, now, byDigest, defaultFreshness), now - minute);
  }
  t.equal(freshUntil(now, false, defaultFreshness), now + 15 * minute);
  t.equal(freshUntil(now, true, defaultFreshness), now + 365 * day);
  t.equal(
    freshUntil(now, false, { ifNotPresentCacheTimeMs: minute, revalidateIntervalMs: hour }),
    now + minute,
  );
});

t.test('dates from other processes are clamped', async (t) => {
  const cases: [string, number, number][] = [
    ['confirmed just now', now + 15 * minute, now],
    ['in the future', now + 20 * day, now],
    ['absurdly far in the future', 8.64e15, now],
    ['an hour ago', now - 45 * minute, now - hour],
    ['absurdly long ago', -8.64e15, now - 365 * day],
    ['no date', Number.NaN, now - 365 * day],
  ];
  for (const [name, written, expected] of cases) {
    t.equal(confirmedAt(written, now, false, defaultFreshness), expected, name);
  }
});
