/**
 * Platforms: what one image manifest runs on, `os/architecture[/variant]`, normalized as containerd does, so that
 * spellings of the same thing (`aarch64`, `arm64/v8`) compare equal.
 *
 * What a registry writes is not trusted: `platformsOf` keeps only what can be a platform, and `architecturesFor` gives the
 * values of the node label `kubernetes.io/arch` that may be written into a pod. `platform-specifier.ts` reads and writes platforms
 * as one text, `platform-match.ts` says which of them a node takes and in which order, as containerd does.
 */
import type { WrittenPlatform } from '../../registry/lookup.ts';

export interface Platform {
  readonly os: string;
  readonly architecture: string;
  readonly variant?: string;
}

/** A platform with what only some systems use: the version (Windows) and features of its operating system. */
export interface FullPlatform extends Platform {
  readonly osVersion?: string;
  readonly osFeatures?: readonly string[];
}

/** Operating system of nodes and pods where nothing else is said. */
export const defaultOs = 'linux';

/**
 * Canonical spelling of an architecture and its variant.
 * Source: containerd/platforms `database.go` normalizeArch. What it does not know it leaves alone (`armv7l`, `loongarch64`).
 * @returns an empty variant for the usual one of an architecture (amd64/v1, arm64/v8); arm always has one
 */
export function normalizeArchitecture(
  architecture: string,
  variant = '',
): { readonly architecture: string; readonly variant: string } {
  const name = architecture.toLowerCase();
  const level = variant.toLowerCase();
  switch (name) {
    case 'i386':
      return { architecture: '386', variant: '' };
    case 'x86_64':
    case 'x86-64':
    case 'amd64':
      return { architecture: 'amd64', variant: level === 'v1' ? '' : level };
    case 'aarch64':
    case 'arm64':
      return { architecture: 'arm64', variant: arm64Variants.get(level) ?? level };
    case 'armhf':
      return { architecture: 'arm', variant: 'v7' };
    case 'armel':
      return { architecture: 'arm', variant: 'v6' };
    case 'arm':
      return { architecture: 'arm', variant: armVariants.get(level) ?? level };
    default:
      return { architecture: name, variant: level };
  }
}

const arm64Variants: ReadonlyMap<string, string> = new Map([
  ['8', ''],
  ['v8', ''],
  ['v8.0', ''],
  ['9', 'v9'],
  ['9.0', 'v9'],
  ['v9.0', 'v9'],
]);

const armVariants: ReadonlyMap<string, string> = new Map([
  ['', 'v7'],
  ['5', 'v5'],
  ['6', 'v6'],
  ['7', 'v7'],
  ['8', 'v8'],
]);

/**
 * Canonical spelling of an operating system (containerd/platforms `database.go` normalizeOS).
 * @param fallback what an empty name means: upstream takes the system that the process runs on, which for a node is its own
 */
export function normalizeOs(os: string, fallback = defaultOs): string {
  const name = os.toLowerCase();
  if (name === '') return fallback;
  return name === 'macos' ? 'darwin' : name;
}

/** A platform in its canonical spelling; features are sorted and unique. Normalizing twice changes nothing. */
export function normalizePlatform(platform: FullPlatform): FullPlatform {
  const { architecture, variant } = normalizeArchitecture(platform.architecture, platform.variant);
  const features = [...new Set(platform.osFeatures)].sort();
  return {
    os: normalizeOs(platform.os),
    architecture,
    ...(variant === '' ? {} : { variant }),
    ...(platform.osVersion === undefined ? {} : { osVersion: platform.osVersion }),
    ...(features.length === 0 ? {} : { osFeatures: features }),
  };
}

/** `os/architecture[/variant]`; `unknown` where there is no operating system. */
export function formatPlatform(platform: Platform): string {
  if (platform.os === '') return 'unknown';
  return [platform.os, platform.architecture, platform.variant ?? ''].filter((part) => part !== '').join('/');
}

/** A label value of Kubernetes that is not empty: at most 63 characters, letters and digits at both ends. */
const labelValue = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/**
 * Whether an architecture may be written into a pod. A registry can write anything there: a text that is no label value would
 * make the API server refuse the pod, and `unknown` (attestations) would keep it from being scheduled for ever.
 */
export function isArchitectureLabel(text: string): boolean {
  return labelValue.test(text) && text.toLowerCase() !== 'unknown';
}

/**
 * The platforms of an image: normalized, each once, in the order in which they were written. Left out are attestations
 * (`unknown/unknown`), entries without an architecture, and names that no system has (not a label value).
 * @param written what an index or a config says
 */
export function platformsOf(written: readonly WrittenPlatform[]): Platform[] {
  const platforms = new Map<string, Platform>();
  for (const entry of written) {
    const { os, architecture, variant } = normalizePlatform({
      os: entry.os,
      architecture: entry.architecture,
      ...(entry.variant === undefined ? {} : { variant: entry.variant }),
    });
    if (!isArchitectureLabel(os) || !isArchitectureLabel(architecture)) continue;
    if (variant !== undefined && !labelValue.test(variant)) continue;
    const platform = { os, architecture, ...(variant === undefined ? {} : { variant }) };
    const key = formatPlatform(platform);
    if (!platforms.has(key)) platforms.set(key, platform);
  }
  return [...platforms.values()];
}

/**
 * The values of the node label `kubernetes.io/arch` on which these platforms can run, sorted, each once.
 *
 * Variants are ignored: the label is the GOARCH of the kubelet, which carries none (kubernetes
 * `pkg/kubelet/kubelet_node_status.go`), and no other label says what a CPU can do. An arm64/v9 image thus counts as arm64, and amd64/v3
 * as amd64: requiring more would keep it from every node, also from those that can run it. Nor does arm64 stand for arm, or amd64
 * for 386: whether a node runs them depends on its CPU and on how its containerd pulls.
 * @param os the pod's operating system, `linux` where the pod names none
 */
export function architecturesFor(platforms: readonly Platform[], os: string = defaultOs): string[] {
  const wanted = normalizeOs(os);
  const architectures = new Set<string>();
  for (const platform of platforms) {
    if (normalizeOs(platform.os) !== wanted) continue;
    const { architecture } = normalizeArchitecture(platform.architecture, platform.variant);
    if (isArchitectureLabel(architecture)) architectures.add(architecture);
  }
  return [...architectures].sort();
}
