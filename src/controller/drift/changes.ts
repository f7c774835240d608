/**
 * What a tag lost or gained: its platforms, variants included, compared with those of the digests that pods run. `amd64` that is
 * replaced by `amd64/v3` is lost and gained: it needs another CPU level. Levels that do not follow from variants belong here too.
 */
import { formatPlatform, type Platform } from '../../names/platform.ts';

export interface PlatformChange {
  readonly lost: readonly string[];
  readonly gained: readonly string[];
}

export interface Compared {
  /** Of the digests that pods run. */
  readonly before: readonly Platform[];
  /** Whether `before` is complete. Otherwise it has the platforms of the pods' nodes, so nothing is known about what was gained. */
  readonly isComplete: boolean;
  /** Of the tag. */
  readonly now: readonly Platform[];
  /** `os/architecture` of each kind of node that the cluster has: what others lose matters to no pod. */
  readonly nodes: ReadonlySet<string>;
}

/** @returns `undefined`: nothing that matters has changed */
export function changeOf({ before, isComplete, now, nodes }: Compared): PlatformChange | undefined {
  const [old, present] = [byText(before), byText(now)];
  const lost = [...old].filter(([text, platform]) => !present.has(text) && nodes.has(kindOf(platform)));
  const gained = isComplete ? [...present].filter(([text]) => !old.has(text)) : [];
  if (lost.length === 0 && gained.length === 0) return undefined;
  return { lost: textsOf(lost), gained: textsOf(gained) };
}

export function kindOf({ os, architecture }: Platform): string {
  return `${os}/${architecture}`;
}

function byText(platforms: readonly Platform[]): ReadonlyMap<string, Platform> {
  return new Map(platforms.map((platform) => [formatPlatform(platform), platform]));
}

function textsOf(entries: readonly (readonly [string, Platform])[]): readonly string[] {
  return entries.map(([text]) => text).sort();
}
