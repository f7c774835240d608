/** The tags of running pods, and when each is checked. */
import { createHash } from 'node:crypto';
import { inTurn } from '../../../async/fair-queue.ts';
import { validReference, type Reference } from '../../../images/references/reference.ts';
import { pullPolicyOf } from '../../../placement/pod/images.ts';
import { hasEnded, type RunningPod } from '../../state/cached.ts';
import type { Caches } from '../../state/caches.ts';
import { pulledReferences, reportsPlatforms } from '../../pods/pulled-images.ts';

export interface RunningTag {
  /** Normalized, such as `docker.io/library/nginx:1.29`. */
  readonly image: string;
  readonly repository: string;
  readonly uses: readonly TagUse[];
}

export interface TagUse {
  readonly pod: RunningPod;
  /** The text in the pod. */
  readonly image: string;
}

/** One HEAD in two seconds at the default interval. A large cluster runs a few thousand tags. */
export const maxTags = 10_000;

/**
 * By normalized image. Without images by digest, images that are never pulled, and pods that have ended. Of a namespace
 * with more tags than are checked in the whole cluster, some pods are left out.
 */
export function runningTags(
  pods: Iterable<RunningPod>,
  parse: (image: string) => Reference,
): ReadonlyMap<string, RunningTag> {
  const found = new Map<string, { image: string; repository: string; uses: TagUse[] }>();
  const counts = new Map<string, number>();
  for (const pod of pods) {
    if (pod.deleting || hasEnded(pod)) continue;
    const before = found.size;
    const count = counts.get(pod.namespace) ?? 0;
    if (count >= maxTags) continue;
    const pulled = pod.images.filter(({ image, pullPolicy }) => pullPolicyOf(image, pullPolicy) !== 'Never');
    for (const written of new Set(pulled.map(({ image }) => image))) {
      const reference = validReference(written, parse);
      if (reference === undefined || reference.digest !== undefined) continue;
      const { text: image, repository } = reference;
      const tag = found.get(image) ?? { image, repository, uses: [] };
      tag.uses.push({ pod, image: written });
      found.set(image, tag);
    }
    counts.set(pod.namespace, count + found.size - before);
  }
  return found;
}

/**
 * Pods of a tag by the digest that their nodes pulled, the digest of most pods first. The digest of
 * one platform's manifest (CRI-O) says nothing about the tag.
 */
export function runningDigests(
  { uses }: RunningTag,
  nodes: Pick<Caches['nodes'], 'get'>,
): ReadonlyMap<string, readonly RunningPod[]> {
  const pulled = uses.flatMap(({ pod, image }) =>
    reportsPlatforms(nodes.get('', pod.node))
      ? []
      : pulledReferences(pod, image).map((reference) => {
          return { pod, digest: reference.slice(reference.indexOf('@') + 1) };
        }),
  );
  const groups = [...Map.groupBy(pulled, ({ digest }) => digest)];
  groups.sort(([, a], [, b]) => b.length - a.length);
  return new Map(groups.map(([digest, all]) => [digest, all.map(({ pod }) => pod)]));
}

/** Some of many images, taken in turn from each namespace; the same ones each time. */
export function fairShare<T extends { readonly image: string }>(
  items: readonly T[],
  most: number,
  inNamespaces: (item: T) => readonly string[],
): readonly T[] {
  if (items.length <= most) return items;
  const sorted = items.toSorted((a, b) => (a.image < b.image ? -1 : 1));
  return inTurn(sorted, inNamespaces).slice(0, most);
}

export function namespacesOf({ uses }: Pick<RunningTag, 'uses'>): readonly string[] {
  return [...new Set(uses.map(({ pod }) => pod.namespace))];
}

/**
 * When a tag is checked next. Each tag has one time per interval, which follows from its name: checks are
 * spread, and the next leader neither repeats one nor needs the last one.
 * @param after server time, milliseconds
 */
export function nextCheckAt(image: string, intervalMs: number, after: number): number {
  const offsetMs = (createHash('sha256').update(image).digest().readUInt32BE(0) / 2 ** 32) * intervalMs;
  return (Math.floor((after - offsetMs) / intervalMs) + 1) * intervalMs + offsetMs;
}
