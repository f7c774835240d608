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
    better: (a, b) => matches(a) && (!matches(b) || exact.better(a, b)),
  };
}

/** Best first; equals keep their order. Others are sorted too, not removed. */
export function sortPlatforms<P extends FullPlatform>(
  platforms: readonly P[],
  matcher: PlatformMatcher,
): P[] {
  return [...platforms].sort((a, b) => (matcher.better(a, b) ? -1 : matcher.better(b, a) ? 1 : 0));
}
