/** How each container runtime selects a platform from an index, and which of these ways a node may have. */
import { byName } from '../names/values.ts';
import { normalizePlatform, spelled, type FullPlatform } from '../names/platform.ts';
import {
  acceptedPlatforms,
  withVariant,
  only,
  onlyStrict,
  selectFromIndex,
  type PlatformMatcher,
} from './platform-match.ts';
import { defaultPlatform, type Machine } from './machine.ts';
import type { NodeClass, PullMode } from './node-class.ts';

export interface Puller {
  readonly runtime: 'containerd' | 'cri-o' | 'docker';
  readonly pullMode?: PullMode;
  /** @returns the index of the platform that the runtime selects, or `undefined` if it finds no match */
  readonly select: (platforms: readonly FullPlatform[], machine: Machine) => number | undefined;
}

const containerdLocal: Puller = {
  runtime: 'containerd',
  pullMode: 'local',
  select: (platforms, machine) => {
    const found = selectFromIndex(named(platforms), localMatcher(machine));
    // Windows prefers the highest version (containerd/platforms `platform_windows_compat.go`).
    const first = machine.os === 'windows' ? highestVersion(platforms, found) : found[0];
    return ifConfigMatches(first, platforms, machine);
  },
};

/** Before 2.0, containerd reads no variant from a config (`images/image.go` in release 1.7). */
const containerdBefore2: Puller = {
  ...containerdLocal,
  select: (platforms, machine) =>
    containerdLocal.select(
      platforms.map((each) => (each.unnamed ? withVariant(each, '') : each)),
      machine,
    ),
};

const containerdTransfer: Puller = {
  runtime: 'containerd',
  pullMode: 'transfer',
  select: (platforms, machine) => {
    const [first] = selectFromIndex(named(platforms), onlyStrict(defaultPlatform(machine)));
    return ifConfigMatches(first, platforms, machine);
  },
};

/**
 * go.podman.io/image `internal/pkg/platform/platform_matcher.go`: it compares the texts of the document, and
 * knows no amd64 variant, no 386 on amd64 and no arm on arm64.
 */
const crio: Puller = {
  runtime: 'cri-o',
  select: (platforms, machine) => {
    const { os, architecture } = machine;
    const own = defaultPlatform(machine);
    const wanted = architecture === 'arm' ? acceptedPlatforms(own).map(spelled) : [];
    for (const text of [...wanted, architecture]) {
      const found = platforms.findIndex(
        (platform) =>
          !platform.unnamed &&
          platform.os === os &&
          (platform.written ?? spelled(normalizePlatform(platform))) === text,
      );
      if (found >= 0) return found;
    }
    // It takes the first entry of an index without platforms, whatever its config says.
    return platforms[0]?.unnamed ? 0 : undefined;
  },
};

/** moby `daemon/internal/distribution/pull_v2_unix.go`: containerd's local pull, with amd64 levels. */
const docker: Puller = {
  runtime: 'docker',
  select: (platforms, machine) => {
    if (machine.architecture !== 'amd64' || machine.os === 'windows')
      return containerdLocal.select(platforms, machine);
    const variant = `v${machine.amd64Level}`;
    return selectFromIndex(named(platforms), only({ ...defaultPlatform(machine), variant }))[0];
  },
};

/** moby `daemon/containerd`: the image store of containerd, without the CPU level before 29. */
const dockerWithContainerd: Puller = { runtime: 'docker', select: containerdLocal.select };

/** The ways in which a node may pull, as far as its class is known. */
export function pullersOf({ os, runtime, pullMode }: NodeClass): readonly Puller[] {
  const dockers = [docker, dockerWithContainerd];
  const name = runtime?.name;
  if (name === 'containerd') return containerds(runtime?.version ?? '', pullMode);
  if (name === 'docker') return dockers;
  if (name === 'cri-o') return [crio];
  return [...containerds('', pullMode), ...dockers, ...(os === 'windows' ? [] : [crio])];
}

/**
 * Whether the runtime takes a platform that needs features of the operating system. Since 2.3 containerd
 * compares them with those of the node, for which the CRI plugin names none (containerd/platforms
 * `platforms.go` since v1.0.0-rc.3, `DefaultSpec`).
 * @returns `undefined` if that is not known
 */
export function ignoresFeatures({ runtime }: NodeClass): boolean | undefined {
  if (runtime === undefined) return undefined;
  const release = runtime.name === 'containerd' ? releaseOf(runtime.version) : 0;
  // Debian builds 2.1 with the library of 2.3 (measured).
  return Number.isNaN(release) || (release >= 2000 && release < 2003) ? undefined : release < 2003;
}

/** The transfer service pulls since 2.1 (containerd `internal/cri/server/images/image_pull.go`). */
function containerds(version: string, pullMode: PullMode | undefined): readonly Puller[] {
  const release = releaseOf(version);
  const all = [
    ...(release >= 2000 ? [] : [containerdBefore2]),
    ...(release < 2000 ? [] : [containerdLocal]),
    ...(release < 2001 ? [] : [containerdTransfer]),
  ];
  const possible = all.filter((puller) => pullMode === undefined || puller.pullMode === pullMode);
  return possible.length === 0 ? all : possible;
}

/** 2003 for 2.3; not a number if it is not known: then every comparison is false. */
function releaseOf(version: string): number {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(major) * 1000 + Number(minor);
}

/** `Default()` of containerd/platforms: exact on Windows. */
function localMatcher(machine: Machine): PlatformMatcher {
  const own = defaultPlatform(machine);
  return machine.os === 'windows' ? onlyStrict(own) : only(own);
}

/** Omits the platforms that the index does not name: such entries come last. */
function named(platforms: readonly FullPlatform[]): readonly (FullPlatform | undefined)[] {
  return platforms.map((platform) => (platform.unnamed ? undefined : platform));
}

/** containerd reads only the first config of entries without platform (`core/images/image.go` Manifest). */
function ifConfigMatches(
  index: number | undefined,
  platforms: readonly FullPlatform[],
  machine: Machine,
): number | undefined {
  const platform = index === undefined ? undefined : platforms[index];
  if (platform?.unnamed === undefined) return index;
  return localMatcher(machine).matches(platform) ? index : undefined;
}

function highestVersion(platforms: readonly FullPlatform[], found: readonly number[]): number | undefined {
  const versionOf = (index: number): string => platforms[index]?.osVersion ?? '';
  return found.toSorted((a, b) => byName(versionOf(b), versionOf(a)))[0];
}
