/**
 * Tags that were pushed again, with other platforms than running pods have. The controller notes them in a
 * ConfigMap, one key for each tag. The webhook forgets older facts of these tags, and `archwright report`
 * notes the architectures that they gained.
 */
import { createHash } from 'node:crypto';
import * as v from 'valibot';
import { parseJson } from '../../http/json.ts';
import { isDigest } from '../../registry/manifests/manifest.ts';
import { maxPlatforms } from '../facts/wire.ts';
import { maxImageLength } from '../references/reference.ts';

/** More than people would read. */
export const maxDriftedTags = 1000;
/** All notes together: a ConfigMap may have 1 MiB. */
export const maxDriftedBytes = 900 * 1024;
/** Operating system, architecture and variant have at most 63 characters each. */
const maxPlatformLength = 200;

const text = (maxLength: number) => v.pipe(v.string(), v.maxLength(maxLength));
const platforms = v.pipe(v.array(text(maxPlatformLength)), v.maxLength(maxPlatforms), v.readonly());

const note = v.object({
  /** Normalized, such as `docker.io/library/nginx:1.29`. */
  image: text(maxImageLength),
  /** What the tag names now. */
  digest: v.pipe(v.string(), v.check(isDigest)),
  /** Platforms of running pods that the tag lost, such as `linux/arm64`; only those that nodes need. */
  lost: platforms,
  /** Platforms that the tag has and running pods have not. */
  gained: platforms,
  /** When it was found. Wall clock, milliseconds. */
  since: v.pipe(v.string(), v.transform(Date.parse), v.number()),
});
export type DriftedTag = Readonly<v.InferOutput<typeof note>>;

/** A text for people: `lost arm64, now has riscv64`. It does not name Linux. */
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
  const { success, output } = v.safeParse(note, typeof value === 'string' && parseJson(value));
  return success && keyOfDrifted(output.image) === key ? output : undefined;
}
