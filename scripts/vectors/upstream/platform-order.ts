/** Matchers of containerd/platforms that only the vectors use. */
import { normalizePlatform, type FullPlatform } from '../../../src/names/platform.ts';
import { onlyStrict, type PlatformMatcher } from '../../../src/nodes/platform-match.ts';

/** Every architecture of the node's operating system; the node's own first. Source: `compare.go` OnlyOS. */
export function onlyOs(node: FullPlatform): PlatformMatcher {
  const exact = onlyStrict(node);
  const matches = (platform: FullPlatform): boolean => {
    const { architecture, variant = '' } = normalizePlatform(platform);
    return onlyStrict({ ...node, architecture, variant }).matches(platform);
  };
  return {
    matches,
    rank: (platform) => (matches(platform) ? Math.min(exact.rank(platform), 1) : Number.POSITIVE_INFINITY),
  };
}

/** Best first; equals keep their order. Others are sorted too, not removed. */
export function sortPlatforms<P extends FullPlatform>(
  platforms: readonly P[],
  matcher: PlatformMatcher,
): P[] {
  return [...platforms].sort((a, b) => {
    const [one, other] = [matcher.rank(a), matcher.rank(b)];
    return one === other ? 0 : one - other;
  });
}
