/** archwright in a person's cluster: its place and configuration, from the ConfigMap of the chart. */
import type { KubeClient } from '../../src/kube/api/client.ts';
import { ignoring, isCode } from '../../src/kube/api/errors.ts';
import type { ConfigMap, KubeObject } from '../../src/kube/api/objects.ts';
import type { Page } from '../../src/kube/api/pages.ts';
import { paths } from '../../src/kube/api/paths.ts';
import { ownNames } from '../../src/names/own-names.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { UsageError } from '../program/exit.ts';
import type { Kubernetes } from './kubernetes.ts';

export interface Release {
  readonly namespace: string;
  /** The chart's `fullname`, which the names of its objects begin with. */
  readonly name: string;
  /** `archwright.toml` */
  readonly configuration: string;
}

type Place = Pick<Release, 'namespace' | 'name'>;

/** Selects all objects of the chart: `archwright.labels` in _names.tpl. */
export const partOfArchwright = 'app.kubernetes.io/part-of=archwright';
/** Pools of agents have ConfigMaps with a component. */
const labelSelector = `${partOfArchwright},!app.kubernetes.io/component`;
const configurationKey = 'archwright.toml';
/** Name of namespace and ConfigMap in the documentation. For people who may not list ConfigMaps. */
const usualName = 'archwright';
/** API servers answer a short list in milliseconds, on a slow line or a busy machine in seconds. */
const limitMs = 10_000;
/** More installations than a cluster has. */
const maxNamespaces = 10;

export interface ReleaseSearch {
  readonly client: KubeClient;
  /** Where the release is; `undefined`: in any namespace. */
  readonly namespace: string | undefined;
  /** The flag that selects one of several, for the message. */
  readonly select: '--release' | '--namespace';
  readonly stop: AbortSignal;
}

/**
 * Finds the release by the label of its ConfigMap; without the right to list them, by the usual name.
 * @returns `undefined` if there is none
 * @throws UsageError if there are several; KubeError, `forbidden` if the ConfigMap may not be read
 */
export async function findRelease({
  client,
  namespace,
  select,
  stop,
}: ReleaseSearch): Promise<Release | undefined> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(limitMs)]);
  try {
    const query = { labelSelector };
    const page = await client.get<Page<ConfigMap>>(paths.configMaps(namespace), { signal, query });
    const [found, ...more] = (page.items ?? []).flatMap((each) => releaseIn(each) ?? []);
    if (more.length === 0) return found;
    const all = [found, ...more].map((each) => `${each?.namespace}/${each?.name}`).join(', ');
    throw new UsageError(`archwright is installed several times (${all}): select one with ${select}`);
  } catch (error) {
    if (isCode(error, 'not-found')) return undefined;
    if (!isCode(error, 'forbidden')) throw error;
    const place = { namespace: namespace ?? usualName, name: usualName };
    const usual = await releaseAt(client, place, signal, ['not-found', 'forbidden']);
    if (usual === undefined) throw error;
    return usual;
  }
}

/** @throws KubeError; UsageError if the chart has no such ConfigMap */
export async function namedRelease(client: KubeClient, place: Place, stop: AbortSignal): Promise<Release> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(limitMs)]);
  const release = await releaseAt(client, place, signal, 'not-found');
  if (release) return release;
  const { namespace, name } = place;
  throw new UsageError(`--release: there is no ConfigMap ${namespace}/${name} of archwright's chart`);
}

async function releaseAt(
  client: KubeClient,
  { namespace, name }: Place,
  signal: AbortSignal,
  ignored: Parameters<typeof ignoring>[0],
): Promise<Release | undefined> {
  const reading = client.get<ConfigMap>(paths.configMaps(namespace, name), { signal });
  return releaseIn((await ignoring(ignored, reading)) ?? {});
}

function releaseIn({ metadata, data }: ConfigMap): Release | undefined {
  const configuration = data?.[configurationKey];
  const { namespace, name } = metadata ?? {};
  if (configuration === undefined || namespace === undefined || name === undefined) return undefined;
  return { namespace, name, configuration };
}

/**
 * archwright's namespace, for a person who names none. In a pod it is the pod's own; else that of the
 * release; else that of the Lease. Without the right to list either, it is the usual one.
 * @throws UsageError if there are several; KubeError
 */
export async function findNamespace(
  { client, access, podNamespace }: Kubernetes,
  configuration: Pick<Configuration, 'name'>,
  stop: AbortSignal,
): Promise<string> {
  if (podNamespace !== undefined) return podNamespace;
  const search = { client, namespace: undefined, select: '--namespace', stop } as const;
  const release = await findRelease(search).catch((error: unknown) => {
    if (isCode(error, 'forbidden')) return 'forbidden' as const;
    throw error;
  });
  if (typeof release === 'object') return release.namespace;
  const query = { fieldSelector: `metadata.name=${ownNames(configuration).lease}`, limit: maxNamespaces };
  const listing = client.get<Page<KubeObject>>(paths.leases(), { signal: stop, query });
  const leases = await ignoring('forbidden', listing);
  if (leases === undefined && release === 'forbidden') return usualName;
  const namespaces = (leases?.items ?? []).flatMap(({ metadata }) => metadata?.namespace ?? []);
  const [found = access.namespace, ...more] = namespaces;
  if (more.length === 0) return found;
  const all = [found, ...more].join(', ');
  throw new UsageError(`archwright runs in several namespaces (${all}): select one with --namespace`);
}
