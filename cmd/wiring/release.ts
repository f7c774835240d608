/** archwright in a person's cluster: its place and configuration, from the ConfigMap of the chart. */
import type { KubeClient } from '../../src/kube/api/client.ts';
import { ignoring, isCode, type KubeError } from '../../src/kube/api/errors.ts';
import type { ConfigMap } from '../../src/kube/api/objects.ts';
import type { Page } from '../../src/kube/api/pages.ts';
import { paths } from '../../src/kube/api/paths.ts';
import { UsageError } from '../program/exit.ts';

export interface Release {
  readonly namespace: string;
  /** The chart's `fullname`, which the names of its objects begin with. */
  readonly name: string;
  /** `archwright.toml` */
  readonly configuration: string;
}

/** Selects all objects of the chart: `archwright.labels` in _names.tpl. */
export const partOfArchwright = 'app.kubernetes.io/part-of=archwright';
/** Pools of agents have ConfigMaps with a component. */
const labelSelector = `${partOfArchwright},!app.kubernetes.io/component`;
const configurationKey = 'archwright.toml';
/** Name of namespace and ConfigMap in the documentation. For people who may not list ConfigMaps. */
export const usualName = 'archwright';
/** API servers answer a short list in milliseconds, on a slow line or a busy machine in seconds. */
const limitMs = 10_000;

/**
 * Finds the release.
 * @param namespace where it is, if that is known; otherwise all namespaces are searched
 * @returns `undefined` if the cluster has none
 * @throws KubeError; `forbidden` if the ConfigMap may not be read
 */
export async function findRelease(
  client: KubeClient,
  namespace: string | undefined,
  stop: AbortSignal,
): Promise<Release | undefined> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(limitMs)]);
  try {
    return (await listReleases(client, namespace, signal))[0];
  } catch (error) {
    if (isCode(error, 'not-found')) return undefined;
    if (!isCode(error, 'forbidden')) throw error;
    return await usualRelease(client, namespace ?? usualName, signal, error);
  }
}

/** @throws KubeError; UsageError if the chart has no such ConfigMap */
export async function namedRelease(
  client: KubeClient,
  { namespace, name }: Pick<Release, 'namespace' | 'name'>,
  stop: AbortSignal,
): Promise<Release> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(limitMs)]);
  const path = paths.configMaps(namespace, name);
  const release = releaseIn((await ignoring('not-found', client.get<ConfigMap>(path, { signal }))) ?? {});
  if (!release)
    throw new UsageError(`--release: there is no ConfigMap ${namespace}/${name} of archwright's chart`);
  return release;
}

/** @throws KubeError */
export async function listReleases(
  client: KubeClient,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<readonly Release[]> {
  const query = { labelSelector };
  const page = await client.get<Page<ConfigMap>>(paths.configMaps(namespace), { signal, query });
  return (page.items ?? []).flatMap((found) => releaseIn(found) ?? []);
}

async function usualRelease(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
  forbidden: KubeError,
): Promise<Release | undefined> {
  try {
    return releaseIn(await client.get<ConfigMap>(paths.configMaps(namespace, usualName), { signal }));
  } catch (error) {
    if (isCode(error, 'not-found', 'forbidden')) throw forbidden;
    throw error;
  }
}

function releaseIn({ metadata, data }: ConfigMap): Release | undefined {
  const configuration = data?.[configurationKey];
  const { namespace, name } = metadata ?? {};
  if (configuration === undefined || namespace === undefined || name === undefined) return undefined;
  return { namespace, name, configuration };
}
