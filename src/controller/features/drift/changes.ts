/**
 * The platforms (with variants) that a tag lost or gained, compared with those of the digests that pods run.
 * `amd64` replaced by `amd64/v3` is both lost and gained: it needs another CPU level. A lost platform matters
 * if a node could run it, and may be unable to run what is left.
 */
import type { ImageFacts } from '../../../images/facts/facts.ts';
import { formatPlatform, type FullPlatform } from '../../../names/platform.ts';
import type { NodeClass } from '../../../nodes/node-class.ts';
import { selectPlatform } from '../../../nodes/selection.ts';
import { formOf } from '../../../placement/rules/images/fit.ts';

export interface PlatformChange {
  readonly lost: readonly string[];
  readonly gained: readonly string[];
}

export interface Comparison {
  /** Platforms of the digests that pods run. */
  readonly before: readonly FullPlatform[];
  /** Otherwise `before` has the platforms of the pods' nodes, and gains are unknown. */
  readonly isComplete: boolean;
  /** What the tag names now. */
  readonly now: Pick<ImageFacts, 'platforms' | 'mediaType'>;
  /** Node classes of the cluster. */
  readonly classes: readonly NodeClass[];
}

/** @returns `undefined`: nothing that matters has changed */
export function changeOf({ before, isComplete, now, classes }: Comparison): PlatformChange | undefined {
  const [old, present] = [byText(before), byText(now.platforms)];
  const unserved = classes.filter((each) => !runs(now, each));
  const mayRun = (platform: FullPlatform, each: NodeClass): boolean =>
    selectPlatform([platform], each, 1, 'manifest').verdict !== 'refused';
  const lost = [...old].filter(
    ([text, platform]) => !present.has(text) && unserved.some((each) => mayRun(platform, each)),
  );
  const gained = isComplete ? [...present].filter(([text]) => !old.has(text)) : [];
  if (lost.length === 0 && gained.length === 0) return undefined;
  return { lost: textsOf(lost), gained: textsOf(gained) };
}

function runs({ platforms, mediaType }: Comparison['now'], node: NodeClass): boolean {
  return platforms.length > 0 && selectPlatform(platforms, node, 1, formOf(mediaType)).verdict === 'runs';
}

function byText(platforms: readonly FullPlatform[]): ReadonlyMap<string, FullPlatform> {
  return new Map(platforms.map((platform) => [formatPlatform(platform), platform]));
}

function textsOf(entries: readonly (readonly [string, FullPlatform])[]): readonly string[] {
  return entries.map(([text]) => text).sort();
}
