/**
 * Platforms: what one image manifest runs on, `os/architecture[/variant]`, normalized as containerd does, so
 * that spellings of the same thing (`aarch64`, `arm64/v8`) compare equal. Registry content is untrusted:
 * `platformsOf` keeps only valid platforms.
 */
import { isArchitecture } from './architecture.ts';
import { isNonEmptyLabelValue } from './labels.ts';
import { own } from './values.ts';

export interface Platform {
  readonly os: string;
  readonly architecture: string;
  readonly variant?: string;
}

/** A platform with what only some systems and runtimes use. */
export interface FullPlatform extends Platform {
  /** Only images for Windows have one. */
  readonly osVersion?: string;
  /** `architecture[/variant]` as in the document, if it is another spelling: CRI-O compares texts. */
  readonly written?: string;
  /** The index names no platforms: this one is from the manifest's config. */
  readonly unnamed?: true;
  /** The document names features that the operating system must have, such as `erofs`. */
  readonly needsFeatures?: true;
}

/** Default operating system of nodes and pods. */
export const defaultOs = 'linux';

/** Other names, with the variant that some of them imply. */
const otherNames: Readonly<Record<string, readonly [architecture: string, variant?: string]>> = {
  i386: ['386', ''],
  x86_64: ['amd64'],
  'x86-64': ['amd64'],
  aarch64: ['arm64'],
  armhf: ['arm', 'v7'],
  armel: ['arm', 'v6'],
};

/** Other spellings of variants, by architecture. */
const otherVariants: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  amd64: { v1: '' },
  arm64: { '8': '', v8: '', 'v8.0': '', '9': 'v9', '9.0': 'v9', 'v9.0': 'v9' },
  arm: { '': 'v7', '5': 'v5', '6': 'v6', '7': 'v7', '8': 'v8' },
};

/**
 * Canonical spelling (containerd/platforms `database.go` normalizeArch): the variant is empty for the usual
 * one (amd64/v1, arm64/v8); arm always has one. Unknown architectures stay as they are (`armv7l`,
 * `loongarch64`).
 */
export function normalizeArchitecture(
  written: string,
  writtenVariant = '',
): { readonly architecture: string; readonly variant: string } {
  const name = written.toLowerCase();
  const [architecture, variant = writtenVariant.toLowerCase()] = own(otherNames, name) ?? [name];
  return { architecture, variant: own(own(otherVariants, architecture), variant) ?? variant };
}

/**
 * Canonical spelling of an operating system (containerd/platforms `database.go` normalizeOS). @param fallback
 * for an empty name: upstream takes the system that the process runs on, which for a node is its own
 */
export function normalizeOs(os: string, fallback = defaultOs): string {
  const name = os.toLowerCase();
  if (name === '') return fallback;
  return name === 'macos' ? 'darwin' : name;
}

/** A platform in canonical spelling. Idempotent. */
export function normalizePlatform(platform: FullPlatform): FullPlatform {
  const { architecture, variant } = normalizeArchitecture(platform.architecture, platform.variant);
  return {
    os: normalizeOs(platform.os),
    architecture,
    ...(variant !== '' && { variant }),
    ...(platform.osVersion !== undefined && { osVersion: platform.osVersion }),
  };
}

/** `os/architecture[/variant]`; `unknown` without an operating system. */
export function formatPlatform(platform: Platform): string {
  if (platform.os === '') return 'unknown';
  return [platform.os, platform.architecture, platform.variant ?? ''].filter((part) => part !== '').join('/');
}

/**
 * The platforms of an image: normalized, each once, in the written order, without attestations
 * (`unknown/unknown`), entries without an architecture, and names that no system has (not a label value). The
 * system's version counts on Windows only.
 */
export function platformsOf(written: readonly FullPlatform[]): FullPlatform[] {
  const platforms = new Map<string, FullPlatform>();
  for (const entry of written) {
    const { os, architecture, variant, osVersion } = normalizePlatform(entry);
    if (!isArchitecture(os) || !isArchitecture(architecture)) continue;
    if (variant !== undefined && !isNonEmptyLabelValue(variant)) continue;
    const version = os === 'windows' && osVersion !== undefined && isNonEmptyLabelValue(osVersion);
    const spelling = spelled(entry);
    const platform = {
      os,
      architecture,
      ...(variant !== undefined && { variant }),
      ...(version && { osVersion }),
      ...(isOther(spelling, { architecture, variant }) && { written: spelling }),
      ...(entry.unnamed && { unnamed: true as const }),
      // The only feature of Windows, `win32k`, is not compared.
      ...(entry.needsFeatures && os !== 'windows' && { needsFeatures: true as const }),
    };
    const key = [formatPlatform(platform), platform.osVersion, platform.written, platform.needsFeatures].join(
      ' ',
    );
    if (!platforms.has(key)) platforms.set(key, platform);
  }
  return [...platforms.values()];
}

/** `arm64/v8` is so common that it counts as canonical too. Every runtime takes it for `arm64`. */
function isOther(spelling: string, platform: Spelled): boolean {
  return spelling !== spelled(platform) && spelling !== 'arm64/v8' && isSpelling(spelling);
}

/** Two label values and a slash. */
export const maxSpellingLength = 127;

/** Whether a text can be `architecture[/variant]`. */
export function isSpelling(text: string): boolean {
  const parts = text.split('/');
  return parts.length <= 2 && parts.every(isNonEmptyLabelValue);
}

interface Spelled {
  readonly architecture: string;
  readonly variant?: string | undefined;
}

/** `architecture[/variant]` */
export function spelled({ architecture, variant = '' }: Spelled): string {
  return variant === '' ? architecture : `${architecture}/${variant}`;
}
