/** ConfigMaps with the controller's notes in archwright's own namespace: watched by name, or read once. */
import type { FactsCache } from '../images/cache/cache.ts';
import { brokenImagesOf, noBrokenImages, parseBroken } from '../images/sources/broken-images.ts';
import { parseDrifted } from '../images/sources/drifted-tags.ts';
import type { ConfigMap } from '../kube/api/objects.ts';
import { paths } from '../kube/api/paths.ts';
import { watchNamed, type NamedObject } from '../kube/watch/reflector.ts';
import type { ClusterObjects } from './cluster.ts';

type Data = Readonly<Record<string, unknown>>;

/** @param onChange gets the data of the ConfigMap after each change; `undefined`: it does not exist */
function watchConfigMap(options: NamedObject, onChange: (data: Data | undefined) => void): { close(): void } {
  const { namespace, name } = options;
  const path = paths.configMaps(namespace);
  const reflector = watchNamed<ConfigMap>({ ...options, path, trim: (object) => object });
  reflector.onChange(() => onChange(reflector.get(namespace, name)?.data));
  return { close: () => reflector.stop() };
}

/** Broken images now. Until the first answer nothing counts as broken. */
export function watchBrokenImages(options: NamedObject) {
  let current = noBrokenImages;
  const watch = watchConfigMap(options, (data) => {
    current = brokenImagesOf(parseBroken(data), () => options.clock.now());
  });
  return {
    brokenOn: (digest: string, inNamespace: string) => current.brokenOn(digest, inNamespace),
    requiredLevel: (digest: string, inNamespace: string) => current.requiredLevel(digest, inNamespace),
    get size() {
      return current.size;
    },
    close: () => watch.close(),
  };
}

/**
 * Forgets the facts of the former digests of drifted tags, so the webhook places the next pod by the new one.
 * Agents forget by themselves.
 */
export function followDriftedTags(options: NamedObject & { readonly cache: Pick<FactsCache, 'forget'> }) {
  /** Digests by tag. Each is applied once: the cache may have newer facts of the tag. */
  let applied: ReadonlyMap<string, string> = new Map();
  return watchConfigMap(options, (data) => {
    const drifted = parseDrifted(data);
    options.cache.forget(drifted.filter(({ image, digest }) => applied.get(image) !== digest));
    applied = new Map(drifted.map(({ image, digest }) => [image, digest]));
  });
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
): Promise<readonly (Data | undefined)[] | undefined> {
  const query = { fieldSelector: `metadata.name=${name}` };
  const found = await cluster.read<{ readonly items?: readonly ConfigMap[] }>(
    paths.configMaps(namespace),
    signal,
    query,
  );
  return found && (found.items ?? []).map(({ data }) => data);
}
