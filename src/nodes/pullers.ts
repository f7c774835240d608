/** How each container runtime selects a platform from an index, and which of these ways a node may have. */
import { normalizePlatform, spelled, type FullPlatform } from '../names/platform.ts';
import { acceptedPlatforms } from './accepted-platforms.ts';
import { defaultPlatform, type Machine } from './machine.ts';
import type { NodeClass, PullMode } from './node-class.ts';
import { only, onlyStrict, selectFromIndex } from './platform-match.ts';

export interface Puller {
  readonly runtime: 'containerd' | 'cri-o' | 'docker';
  readonly pullMode?: PullMode;
  /** @returns the index of the platform that the runtime selects, or `undefined` if it finds no match */
  readonly select: (platforms: readonly FullPlatform[], machine: Machine) => number | undefined;
}

/** The first version with the transfer service (containerd `internal/cri/server/images/image_pull.go`). */
const transferSince = [2, 1] as const;

const containerdLocal: Puller = {
  runtime: 'containerd',
  pullMode: 'local',
  // Windows matches exactly and prefers the highest version (containerd/platforms `defaults_windows.go`).
  select: (platforms, machine) =>
    machine.os === 'windows'
      ? highestVersion(platforms, selectFromIndex(platforms, onlyStrict(defaultPlatform(machine))))
      : selectFromIndex(platforms, only(defaultPlatform(machine)))[0],
};

const containerdTransfer: Puller = {
  runtime: 'containerd',
  pullMode: 'transfer',
  select: (platforms, machine) => selectFromIndex(platforms, onlyStrict(defaultPlatform(machine)))[0],
};

/**
 * go.podman.io/image `internal/pkg/platform/platform_matcher.go`: it compares the texts of the document, and knows no amd64 variant,
 * no 386 on amd64 and no arm on arm64.
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
          platform.os === os && (platform.written ?? spelled(normalizePlatform(platform))) === text,
      );
      if (found >= 0) return found;
    }
    return undefined;
  },
};

/** moby `daemon/internal/distribution/pull_v2_unix.go`: as containerd's local pull, but with the CPU level of amd64. */
const docker: Puller = {
  runtime: 'docker',
  select: (platforms, machine) => {
    if (machine.architecture !== 'amd64' || machine.os === 'windows')
      return containerdLocal.select(platforms, machine);
    const variant = `v${machine.amd64Level}`;
    return selectFromIndex(platforms, only({ ...defaultPlatform(machine), variant }))[0];
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

function containerds(version: string, pullMode: PullMode | undefined): readonly Puller[] {
  if (pullMode === 'local') return [containerdLocal];
  if (pullMode === 'transfer') return [containerdTransfer];
  return isBefore(version, transferSince) ? [containerdLocal] : [containerdLocal, containerdTransfer];
}

function isBefore(version: string, [major, minor]: readonly [number, number]): boolean {
  const match = /^v?(\d+)\.(\d+)/.exec(version);
  if (match === null) return false;
  const [, first = '', second = ''] = match;
  return Number(first) < major || (Number(first) === major && Number(second) < minor);
}

function highestVersion(platforms: readonly FullPlatform[], found: readonly number[]): number | undefined {
  const versionOf = (index: number): string => platforms[index]?.osVersion ?? '';
  return [...found].sort((a, b) => (versionOf(b) > versionOf(a) ? 1 : -1))[0];
}
