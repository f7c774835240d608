/**
 * Which platforms a node takes, and which it prefers, as containerd decides. Source: containerd/platforms
 * `compare.go` and `platforms.go` NewMatcher; for the selection from an index containerd
 * `core/images/image.go`.
 */
import { normalizePlatform, type FullPlatform } from '../names/platform.ts';
import { acceptedPlatforms } from './accepted-platforms.ts';
import { windowsVersionMatches } from './windows-version.ts';

export interface PlatformMatcher {
  matches(platform: FullPlatform): boolean;
  /** Whether `a` is liked better than `b`; false where they are equal. */
  better(a: FullPlatform, b: FullPlatform): boolean;
}

/** Everything that a node can run, best first: the local pull of containerd. */
export function only(node: FullPlatform): PlatformMatcher {
  return ordered(acceptedPlatforms(node));
}

/** Exactly the node's platform: the transfer service of containerd. */
export function onlyStrict(node: FullPlatform): PlatformMatcher {
  return ordered([normalizePlatform(node)]);
}

/** Any of the platforms, in order of preference; among equals, more features of the operating system win. */
function ordered(platforms: readonly FullPlatform[]): PlatformMatcher {
  const exact = platforms.map(matcherOf);
  const better = (a: FullPlatform, b: FullPlatform): boolean => {
    for (const matches of exact) {
      const [fits, otherFits] = [matches(a), matches(b)];
      if (fits && otherFits) return featureCount(a) > featureCount(b);
      if (fits || otherFits) return fits;
    }
    return featureCount(a) + featureCount(b) > 0 && better(withoutFeatures(a), withoutFeatures(b));
  };
  return { matches: (platform) => exact.some((matches) => matches(platform)), better };
}

/**
 * The entries of an index that a node takes, best first; containerd takes the first.
 * @param entries their platforms; `undefined`: none, so that the config decides, after all others
 * @returns indices into `entries`
 */
export function selectFromIndex(
  entries: readonly (FullPlatform | undefined)[],
  matcher: PlatformMatcher,
): number[] {
  const candidates = entries
    .map((platform, index) => ({ platform, index }))
    .filter(({ platform }) => platform === undefined || matcher.matches(platform));
  return candidates
    .sort((a, b) => {
      if (a.platform === undefined || b.platform === undefined) {
        return Number(a.platform === undefined) - Number(b.platform === undefined);
      }
      if (matcher.better(a.platform, b.platform)) return -1;
      return matcher.better(b.platform, a.platform) ? 1 : 0;
    })
    .map(({ index }) => index);
}

/** Equal system, architecture and variant, no other features, and a version that the wanted one runs. */
function matcherOf(wanted: FullPlatform): (platform: FullPlatform) => boolean {
  const normalized = normalizePlatform(wanted);
  return (platform) => {
    const candidate = normalizePlatform(platform);
    return (
      candidate.os === normalized.os &&
      candidate.architecture === normalized.architecture &&
      candidate.variant === normalized.variant &&
      versionMatches(normalized, platform) &&
      hasFeatures(normalized, candidate)
    );
  };
}

function versionMatches(wanted: FullPlatform, platform: FullPlatform): boolean {
  return wanted.os !== 'windows' || windowsVersionMatches(wanted.osVersion ?? '', platform.osVersion ?? '');
}

function hasFeatures(wanted: FullPlatform, platform: FullPlatform): boolean {
  return (platform.osFeatures ?? []).every((feature) => wanted.osFeatures?.includes(feature) ?? false);
}

function featureCount(platform: FullPlatform): number {
  return platform.osFeatures?.length ?? 0;
}

function withoutFeatures(platform: FullPlatform): FullPlatform {
  const { osFeatures: _, ...rest } = platform;
  return rest;
}
