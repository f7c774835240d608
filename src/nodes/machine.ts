/** Machines that fit a node class. A class with unknown fields fits several. */
import { normalizePlatform, type FullPlatform } from '../names/platform.ts';
import type { Amd64Level } from './node-class.ts';
import { only, windowsVersionMatches } from './platform-match.ts';

export interface Machine {
  readonly os: string;
  readonly architecture: string;
  /** Empty if the architecture has none. */
  readonly armVariant: string;
  readonly amd64Level: Amd64Level;
  /** Whether an arm64 CPU runs 32-bit programs. */
  readonly aarch32: boolean;
  /** Whether an arm64 CPU is newer than `armVariant`: Linux reports `8` for all of them. */
  readonly newerCpu: boolean;
  /** Empty if unknown. */
  readonly osVersion: string;
}

/** containerd's own platform (containerd/platforms `defaults_unix.go`): on amd64 it has no variant. */
export function defaultPlatform({ os, architecture, armVariant, osVersion }: Machine): FullPlatform {
  return {
    os,
    architecture,
    ...(armVariant !== '' && { variant: armVariant }),
    ...(osVersion !== '' && { osVersion }),
  };
}

/**
 * Whether the machine's CPU and operating system can run programs for a platform.
 * @param requiredLevel x86-64 level that the program needs, whatever its variant says
 */
export function canRun(written: FullPlatform, machine: Machine, requiredLevel: number): boolean {
  const platform = normalizePlatform(written);
  if (platform.os !== machine.os) return false;
  if (platform.os === 'windows' && !windowsVersionMatches(machine.osVersion, platform.osVersion ?? ''))
    return false;
  if (platform.architecture === machine.architecture) return runsVariant(platform, machine, requiredLevel);
  if (machine.architecture === 'amd64') return platform.architecture === '386';
  return machine.architecture === 'arm64' && platform.architecture === 'arm' && machine.aarch32;
}

function runsVariant(
  { os, architecture, variant }: FullPlatform,
  machine: Machine,
  requiredLevel: number,
): boolean {
  switch (architecture) {
    case 'amd64':
      return machine.amd64Level >= Math.max(requiredLevel, levelOfVariant(variant));
    case 'arm':
    case 'arm64':
      return (
        machine.newerCpu ||
        only(defaultPlatform(machine)).matches({ os, architecture, ...(variant && { variant }) })
      );
    default:
      return true;
  }
}

/** The level of an amd64 variant; 1 for an unknown variant. */
export function levelOfVariant(variant = ''): number {
  return Number(/^v?(\d+)$/.exec(variant)?.[1] ?? 1);
}
