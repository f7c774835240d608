/** A ConfigMap with notes in archwright's own namespace: watched by name, or read once. */
import type { ConfigMap } from '../kube/api/objects.ts';
import { paths } from '../kube/api/paths.ts';
import { watchNamed, type NamedObject } from '../kube/watch/reflector.ts';
import type { ClusterObjects } from './cluster.ts';

type Data = Readonly<Record<string, unknown>>;

/** @param onChange gets the data of the ConfigMap after each change; `undefined`: it does not exist */
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
