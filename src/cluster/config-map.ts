/** A ConfigMap with notes, in archwright's own namespace: followed by a watch on its name, or read once. */
import type { ConfigMap } from '../kube/api/objects.ts';
import { paths } from '../kube/api/paths.ts';
import { watchNamed, type NamedObject } from '../kube/watch/reflector.ts';
import type { ClusterObjects } from './cluster.ts';

type Data = Readonly<Record<string, unknown>>;

/** @param onChange called with the data of the ConfigMap whenever it changes; `undefined`: it does not exist */
export function watchConfigMap(
  options: NamedObject,
  onChange: (data: Data | undefined) => void,
): { close(): void } {
  const { namespace, name } = options;
  const path = paths.configMaps(namespace);
  const reflector = watchNamed<ConfigMap>({ ...options, path, trim: (object) => object });
  reflector.onChange(() => onChange(reflector.get(namespace, name)?.data));
  return { close: () => reflector.stop() };
}

/**
 * Reads it once, for the command line.
 * @param namespace `undefined`: all namespaces are searched for the name
 * @returns the data of what was found; `undefined` without the permission
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
