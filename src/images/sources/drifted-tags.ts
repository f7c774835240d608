/**
 * Tags that were pushed again, with other platforms than running pods have. The controller notes them in a
 * ConfigMap, one key for each tag. The webhook forgets older facts of these tags, and `archwright report`
 * lists them.
 */
import { createHash } from 'node:crypto';
import { asObject, parseJson } from '../../http/json.ts';
import { isDigest } from '../../registry/manifests/manifest.ts';

export interface DriftedTag {
  /** Normalized, such as `docker.io/library/nginx:1.29`. */
  readonly image: string;
  /** What the tag names now. */
  readonly digest: string;
  /** Platforms of running pods that the tag lost, such as `linux/arm64`; only those that nodes need. */
  readonly lost: readonly string[];
  /** Platforms that the tag has and running pods have not. */
  readonly gained: readonly string[];
  /** When it was found. Wall clock, milliseconds. */
  readonly since: number;
}

/** More than people would read. */
export const maxDriftedTags = 1000;
/** All notes together: a ConfigMap may have 1 MiB. */
export const maxDriftedBytes = 900 * 1024;
/** A path has at most 255 characters, a tag 128; a domain has no limit of its own. */
const maxImageLength = 1024;
const maxPlatforms = 64;
/** Operating system, architecture and variant have at most 63 characters each. */
const maxPlatformLength = 200;
const keyForm = /^[0-9a-f]{32}$/u;

/** For people: `lost arm64, now has riscv64`. Linux is not named. */
export function describeDrift({ lost, gained }: Pick<DriftedTag, 'lost' | 'gained'>): string {
  const named = (platforms: readonly string[]): string =>
    platforms.map((platform) => platform.replace(/^linux\//u, '')).join(' ');
  return [
    ...(lost.length > 0 ? [`lost ${named(lost)}`] : []),
    ...(gained.length > 0 ? [`now has ${named(gained)}`] : []),
  ].join(', ');
}

/** The key of a note: keys of a ConfigMap have no slash and no colon. */
export function keyOfDrifted(image: string): string {
  return createHash('sha256').update(image).digest('hex').slice(0, 32);
}

/** The value of a note's key. */
export function formatDrifted({ image, digest, lost, gained, since }: DriftedTag): string {
  return JSON.stringify({ image, digest, lost, gained, since: new Date(since).toISOString() });
}

/** Reads the notes of a ConfigMap. People can edit it: invalid and surplus notes are left out. */
export function parseDrifted(data: Readonly<Record<string, unknown>> | undefined): readonly DriftedTag[] {
  return Object.entries(data ?? {})
    .slice(0, maxDriftedTags)
    .flatMap(([key, value]) => noteOf(key, value) ?? []);
}

function noteOf(key: string, value: unknown): DriftedTag | undefined {
  if (!keyForm.test(key) || typeof value !== 'string') return undefined;
  const { image, digest, lost, gained, since } = asObject(parseJson(value)) ?? {};
  if (typeof image !== 'string' || image.length > maxImageLength || keyOfDrifted(image) !== key)
    return undefined;
  if (typeof digest !== 'string' || !isDigest(digest) || typeof since !== 'string') return undefined;
  const time = Date.parse(since);
  if (!isPlatforms(lost) || !isPlatforms(gained) || Number.isNaN(time)) return undefined;
  return { image, digest, lost, gained, since: time };
}

function isPlatforms(value: unknown): value is readonly string[] {
  if (!Array.isArray(value) || value.length > maxPlatforms) return false;
  return value.every((each) => typeof each === 'string' && each.length <= maxPlatformLength);
}
