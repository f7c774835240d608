/**
 * The older and smaller platforms that a CPU also runs. Source: containerd/platforms `compare.go`
 * platformVector: amd64 levels downwards and 386; 32-bit arm down to v5; arm64 minor versions downwards, v9.x
 * as far as v8.(x+5), and 32-bit arm.
 */
import { normalizePlatform, type FullPlatform } from '../names/platform.ts';

/** The last minor version of ARMv8; v9.4 and later contain all of it. */
const lastArm8Minor = 9;
/** ARMv9.0 was made from v8.5. */
const arm9Offset = 5;
const oldestArm = 5;

/**
 * What a node accepts, best first, itself at the head.
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
