/** ConfigMaps with the controller's notes in archwright's own namespace: watched by name, or read once. */
import type { FactsCache } from '../images/cache/cache.ts';
import { brokenImagesOf, noBrokenImages, parseBroken } from '../images/sources/broken-images.ts';
import { parseDrifted } from '../images/sources/drifted-tags.ts';
import type { ConfigMap } from '../kube/api/objects.ts';
import { paths } from '../kube/api/paths.ts';
import { watchNamed, type NamedObject } from '../kube/watch/reflector.ts';
import type { ClusterObjects } from './cluster.ts';

/** Broken images now. Until the first answer nothing counts as broken. */
export function watchBrokenImages(options: NamedObject) {
  const { namespace, name, clock } = options;
  const watch = watchNamed({
    ...options,
    path: paths.configMaps(namespace),
    trim: ({ data }: ConfigMap) => brokenImagesOf(parseBroken(data), () => clock.now()),
  });
  const current = () => watch.get(namespace, name) ?? noBrokenImages;
  return {
    brokenOn: (digest: string, inNamespace: string) => current().brokenOn(digest, inNamespace),
    requiredLevel: (digest: string, inNamespace: string) => current().requiredLevel(digest, inNamespace),
    get size() {
      return current().size;
    },
    close: () => watch.stop(),
  };
}

/**
 * Forgets the facts of the former digests of drifted tags, so the webhook places the next pod by the new one.
 * Agents forget by themselves.
 */
export function followDriftedTags(options: NamedObject & { readonly cache: Pick<FactsCache, 'forget'> }) {
  const { namespace, name, cache } = options;
  /** Digests by tag. Each is applied once: the cache may have newer facts of the tag. */
  let applied: ReadonlyMap<string, string> = new Map();
  const path = paths.configMaps(namespace);
  const watch = watchNamed({ ...options, path, trim: ({ data }: ConfigMap) => parseDrifted(data) });
  watch.onChange(() => {
    const drifted = watch.get(namespace, name) ?? [];
    cache.forget(drifted.filter(({ image, digest }) => applied.get(image) !== digest));
    applied = new Map(drifted.map(({ image, digest }) => [image, digest]));
  });
  return { close: () => watch.stop() };
}

/**
 * Reads it once, for the command line.
 * @param namespace `undefined`: searches all namespaces for the name
 * @returns the data found; `undefined` without the permission
 */
export async function readConfigMaps(
  { namespace, name }: { readonly namespace: string | undefined; readonly name: string },
  cluster: Pick<ClusterObjects, 'read'>,
  signal: AbortSignal,
): Promise<readonly ConfigMap['data'][] | undefined> {
  const query = { fieldSelector: `metadata.name=${name}` };
  const found = await cluster.read<{ readonly items?: readonly ConfigMap[] }>(
    paths.configMaps(namespace),
    signal,
    query,
  );
  return found && (found.items ?? []).map(({ data }) => data);
}
