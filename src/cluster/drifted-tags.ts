/**
 * Drifted tags in the cache of the webhook. A watch on the controller's notes forgets the facts of a tag's
 * former digest, so the next pod is placed by the new one. Agents forget by themselves.
 */
import type { FactsCache } from '../images/cache/cache.ts';
import { parseDrifted } from '../images/sources/drifted-tags.ts';
import type { NamedObject } from '../kube/watch/reflector.ts';
import { watchConfigMap } from './config-map.ts';

export function followDriftedTags(options: NamedObject & { readonly cache: Pick<FactsCache, 'forget'> }): {
  close(): void;
} {
  /** Digests by tag. Each is applied once: the cache may have newer facts of the tag. */
  let applied: ReadonlyMap<string, string> = new Map();
  return watchConfigMap(options, (data) => {
    const drifted = parseDrifted(data);
    options.cache.forget(drifted.filter(({ image, digest }) => applied.get(image) !== digest));
    applied = new Map(drifted.map(({ image, digest }) => [image, digest]));
  });
}
