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
  /** 0 for the best; infinite for a platform that does not match. */
  rank(platform: FullPlatform): number;
}

/** Everything that a node can run, best first: the local pull of containerd. */
export function only(node: FullPlatform): PlatformMatcher {
  return ordered(acceptedPlatforms(node));
}

/** Exactly the node's platform: the transfer service of containerd. */
export function onlyStrict(node: FullPlatform): PlatformMatcher {
  return ordered([normalizePlatform(node)]);
}

/** Any of the platforms, in order of preference. */
function ordered(platforms: readonly FullPlatform[]): PlatformMatcher {
  const accepted = platforms.map(normalizePlatform);
  const rank = (platform: FullPlatform): number => {
    const normalized = normalizePlatform(platform);
    const found = accepted.findIndex((wanted) => fits(wanted, normalized));
    return found < 0 ? Number.POSITIVE_INFINITY : found;
  };
  return { matches: (platform) => Number.isFinite(rank(platform)), rank };
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
  return entries
    .map((platform, index) => ({ index, rank: platform ? matcher.rank(platform) : Number.MAX_VALUE }))
    .filter((entry) => Number.isFinite(entry.rank))
    .sort((a, b) => a.rank - b.rank)
    .map(({ index }) => index);
}

/** Equal system, architecture and variant, and a version that the wanted one runs. Both are normalized. */
function fits(wanted: FullPlatform, { os, architecture, variant, osVersion = '' }: FullPlatform): boolean {
  return (
    os === wanted.os &&
    architecture === wanted.architecture &&
    variant === wanted.variant &&
    (os !== 'windows' || windowsVersionMatches(wanted.osVersion ?? '', osVersion))
  );
}
