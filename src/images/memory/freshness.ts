/**
 * How long image facts can be relied on: the age since a registry last confirmed them counts. Facts of a
 * digest are always fresh. A tag has three states for a pod that pulls `IfNotPresent` (or `Never`, which runs
 * what an earlier pull left on the node): fresh, then due (it still answers, and is revalidated behind the
 * answer), then expired (a lookup comes first). For `Always` there is no middle: the node asks the registry
 * at every start, so an answer older than `pullAlwaysCacheTime` does not count.
 */
import type { PullPolicy } from '../facts/facts.ts';

export interface FreshnessSettings {
  /** `ifNotPresentCacheTime`: after this age a tag's facts do not answer any more. */
  readonly ifNotPresentCacheTimeMs: number;
  /** `revalidateInterval`: after this age a tag's facts are confirmed behind the next answer. */
  readonly revalidateIntervalMs: number;
  /** `pullAlwaysCacheTime`; absent: each pod that pulls `Always` causes a lookup. */
  readonly pullAlwaysCacheTimeMs?: number | undefined;
}

const minute = 60_000;
const day = 86_400_000;

/** One HEAD per image, which registries do not count, and only while pods use the image. */
export const defaultFreshness: FreshnessSettings = {
  ifNotPresentCacheTimeMs: 7 * day,
  revalidateIntervalMs: 15 * minute,
};

/** The longest configurable time, and `freshUntil` of a digest. */
const longestAgeMs = 365 * day;

export type Freshness = 'fresh' | 'due' | 'expired';

/** @param byDigest whether the pod names the image by digest */
export function freshnessOf(
  ageMs: number,
  byDigest: boolean,
  pullPolicy: PullPolicy,
  settings: FreshnessSettings,
): Freshness {
  if (byDigest) return 'fresh';
  if (pullPolicy === 'Always') {
    const { pullAlwaysCacheTimeMs } = settings;
    return pullAlwaysCacheTimeMs !== undefined && ageMs < pullAlwaysCacheTimeMs ? 'fresh' : 'expired';
  }
  if (ageMs >= settings.ifNotPresentCacheTimeMs) return 'expired';
  return ageMs < settings.revalidateIntervalMs ? 'fresh' : 'due';
}

/**
 * The value of `freshUntil`, in milliseconds of the wall clock. It does not depend on the pull policy of the
 * pod, so that a reader can compute when a registry confirmed the facts (`confirmedAt`).
 */
export function freshUntil(confirmedMs: number, byDigest: boolean, settings: FreshnessSettings): number {
  return confirmedMs + lifetime(byDigest, settings);
}

/**
 * When facts from outside the process were confirmed: the reverse of `freshUntil`. Never in the future, so
 * that a wrong date makes facts at most as fresh as if they were confirmed now, and never further back than
 * any lifetime, so that it stays a date. NaN counts as that old.
 */
export function confirmedAt(
  freshUntilMs: number,
  nowMs: number,
  byDigest: boolean,
  settings: FreshnessSettings,
): number {
  if (Number.isNaN(freshUntilMs)) return nowMs - longestAgeMs;
  const confirmedMs = freshUntilMs - lifetime(byDigest, settings);
  return Math.max(nowMs - longestAgeMs, Math.min(nowMs, confirmedMs));
}

function lifetime(byDigest: boolean, settings: FreshnessSettings): number {
  if (byDigest) return longestAgeMs;
  return Math.min(settings.revalidateIntervalMs, settings.ifNotPresentCacheTimeMs);
}
