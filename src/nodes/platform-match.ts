/**
 * Which platforms a node takes, and which it prefers, as containerd decides. Source: containerd/platforms
 * `compare.go` and `platforms.go` NewMatcher; for the selection from an index containerd
 * `core/images/image.go`.
 */
import { normalizePlatform, type FullPlatform } from '../names/platform.ts';

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

/** The last minor version of ARMv8; v9.4 and later contain all of it. */
const lastArm8Minor = 9;
/** ARMv9.0 was made from v8.5. */
const arm9Offset = 5;
const oldestArm = 5;

/**
 * What a node accepts, best first, itself at the head: the older and smaller platforms that its CPU also runs
 * (containerd/platforms `compare.go` platformVector). amd64 levels downwards and 386; 32-bit arm down to v5; arm64
 * minor versions downwards, v9.x as far as v8.(x+5), and 32-bit arm.
 * @param node its platform; only arm and arm64 nodes ever have a variant of their own
 */
export function acceptedPlatforms(node: FullPlatform): FullPlatform[] {
  const platform = normalizePlatform(node);
  switch (platform.architecture) {
    case 'amd64':
      return [
        platform,
        ...downwards(level(platform.variant) - 1, 1).map((n) => withVariant(platform, `v${n}`)),
        withVariant({ ...platform, architecture: '386' }, ''),
      ];
    case 'arm':
      return [platform, ...olderArm(platform)];
    case 'arm64':
      return acceptedByArm64(platform);
    default:
      return [platform];
  }
}

function acceptedByArm64(platform: FullPlatform): FullPlatform[] {
  const match = /^v([89])(?:\.(\d))?$/.exec(platform.variant ?? 'v8');
  if (match === null) return [platform];
  const minor = Number(match[2] ?? 0);
  const variants =
    match[1] === '9'
      ? [...arm64Variants(9, minor), ...arm64Variants(8, Math.min(minor + arm9Offset, lastArm8Minor))]
      : arm64Variants(8, minor);
  const arm = withVariant({ ...platform, architecture: 'arm' }, 'v8');
  return [...variants.map((variant) => withVariant(platform, variant)), arm, ...olderArm(arm)];
}

function arm64Variants(major: number, minor: number): string[] {
  return downwards(minor, 0).map((n) => (n === 0 ? `v${major}` : `v${major}.${n}`));
}

function olderArm(platform: FullPlatform): FullPlatform[] {
  return downwards(level(platform.variant) - 1, oldestArm).map((n) => withVariant(platform, `v${n}`));
}

/** The number of `v3`; 0 where it has none, and where it is so large that no CPU has it. */
function level(variant = ''): number {
  return /^v?\d{1,2}$/.test(variant) ? Number(variant.replace('v', '')) : 0;
}

function downwards(from: number, to: number): number[] {
  return Array.from({ length: Math.max(from - to + 1, 0) }, (_, index) => from - index);
}

export function withVariant(platform: FullPlatform, variant: string): FullPlatform {
  const { variant: _, ...rest } = platform;
  return variant === '' ? rest : { ...rest, variant };
}
