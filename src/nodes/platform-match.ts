/**
 * Which platforms a node takes, and which it prefers, as containerd decides. Source: containerd/platforms
 * `compare.go` and `platforms.go` NewMatcher; for the selection from an index containerd
 * `core/images/image.go`.
 */
import { normalizePlatform, type FullPlatform } from '../names/platform.ts';
import { acceptedPlatforms } from './accepted-platforms.ts';

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

const ltsc2022 = 20348;
const ltsc2025 = 26100;

/** Releases with a stable ABI, newest first. A host also runs containers of the release before its own. */
const stableReleases = [ltsc2025, ltsc2022];

/**
 * Whether a host of one version of Windows runs a container of another, such as `10.0.17763` (containerd/platforms
 * `platform_windows_compat.go` v1.0.0-rc.5, after Microsoft's version compatibility table). An unknown host version,
 * and a container without version, fit everything.
 */
export function windowsVersionMatches(host: string, container: string): boolean {
  const hostVersion = parseVersion(host);
  if (hostVersion === undefined || container === '') return true;
  const { major, minor, build } = parseVersion(container) ?? { major: 0, minor: 0, build: 0 };
  if (hostVersion.major !== major || hostVersion.minor !== minor) return false;
  if (hostVersion.build < ltsc2022) return hostVersion.build === build;
  const generation = stableReleases.findIndex((release) => hostVersion.build >= release);
  const oldest = stableReleases[generation + 1] ?? ltsc2022;
  return oldest <= build && build <= hostVersion.build;
}

function parseVersion(text: string) {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,5})(?:\.|$)/.exec(text);
  if (match === null) return undefined;
  const [major = 0, minor = 0, build = 0] = match.slice(1).map(Number);
  const fits = major <= 0xff && minor <= 0xff && build <= 0xffff;
  return fits && major + minor + build > 0 ? { major, minor, build } : undefined;
}
