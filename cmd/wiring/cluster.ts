/**
 * The cluster of a person's command: of a kubeconfig, or of the pod. And archwright in it: its place and its
 * settings, from the ConfigMap of the chart.
 */
import { ifCode, isCode, KubeError, ignoring } from '../../src/kube/api/errors.ts';
import { messageOf } from '../../src/names/printable.ts';
import { close, openCliContext, type CliContext } from '../program/context.ts';
import { UsageError } from '../program/exit.ts';
import { objectName } from '../program/flag.ts';
import type { Invocation } from '../program/subcommand.ts';
import { openKubernetes, withOwnNamespace, type Kubernetes } from './kubernetes.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import type { ConfigMap, KubeObject } from '../../src/kube/api/objects.ts';
import type { Page } from '../../src/kube/api/pages.ts';
import { paths } from '../../src/kube/api/paths.ts';
import { ownNames } from '../../src/names/keys.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';

export const releaseFlag = {
  release: objectName('archwright’s ConfigMap in the cluster. Default: the one that is found.'),
};

export interface Connection {
  /** Has the person's own settings. */
  readonly own: CliContext;
  readonly kubernetes: Kubernetes;
}

export interface Cluster extends Connection {
  /** Has the settings of the release, if no configuration file is given. */
  readonly context: CliContext;
  readonly release: Release | undefined;
}

/** A command may do without a cluster. */
export type OptionalCluster = Omit<Cluster, 'kubernetes'> & Partial<Pick<Cluster, 'kubernetes'>>;

/** @param opened closes the client @throws UsageError without a usable cluster; ConfigurationError */
export async function connect(invocation: Invocation, opened: AsyncDisposableStack): Promise<Connection> {
  const own = await openCliContext(invocation);
  const kubernetes = await kubernetesOf(invocation, own, opened);
  if (!kubernetes) throw new UsageError('no cluster found; set --kubeconfig');
  return { own, kubernetes };
}

async function kubernetesOf({ io }: Invocation, own: CliContext, opened: AsyncDisposableStack) {
  const opening = openKubernetes(own.configuration, io.env, 'own kubeconfig');
  const kubernetes = await opening.catch((error: unknown) => {
    throw new UsageError(messageOf(error));
  });
  if (kubernetes) opened.adopt(kubernetes.client, close);
  return kubernetes;
}

/** @throws UsageError, also if archwright is installed several times; ConfigurationError; KubeError */
export async function openCluster(invocation: Invocation, opened: AsyncDisposableStack): Promise<Cluster> {
  return await withRelease(invocation, await connect(invocation, opened));
}

/** The same for a command that can do without: a cluster that cannot be used is ignored with a warning. */
export async function openOptionalCluster(
  invocation: Invocation,
  opened: AsyncDisposableStack,
): Promise<OptionalCluster> {
  const own = await openCliContext(invocation);
  const without = { own, context: own, release: undefined };
  const { kubeconfig, kubeContext } = own.configuration;
  const kubernetes = await kubernetesOf(invocation, own, opened).catch((error: unknown) => {
    // One that is named explicitly must be valid.
    if (kubeconfig !== undefined || kubeContext !== undefined) throw error;
    invocation.say(`the cluster of the kubeconfig is ignored: ${messageOf(error)}`, 'warning');
    return undefined;
  });
  if (!kubernetes) return without;
  try {
    return await withRelease(invocation, { own, kubernetes });
  } catch (error) {
    if (!(error instanceof KubeError) || invocation.stop.aborted) throw error;
    invocation.say(`the cluster cannot be used and is ignored: ${error.message}`, 'warning');
    return without;
  }
}

async function withRelease(invocation: Invocation, connection: Connection): Promise<Cluster> {
  const { own, kubernetes } = connection;
  const release = await releaseOf(invocation, connection);
  if (release) return { ...connection, release, context: await releaseContext(invocation, own, release) };
  const configuration = withOwnNamespace(() => own.configuration, kubernetes)();
  return { ...connection, release, context: { ...own, configuration } };
}

/** @returns `undefined` without one, or if its ConfigMap may not be read */
async function releaseOf(
  { flags, sources, io, stop, say }: Invocation,
  { own: { configuration }, kubernetes }: Connection,
): Promise<Release | undefined> {
  const { client, podNamespace } = kubernetes;
  const { release: named } = flags as Partial<Invocation<typeof releaseFlag>['flags']>;
  if (named) return await namedRelease(client, named, stop);
  // A pod of archwright has the configuration in a file, and may not read the ConfigMap.
  const isMounted = sources.file !== undefined && sources.file === io.env['ARCHWRIGHT_CONFIG'];
  if (podNamespace !== undefined && (configuration.agents.length > 0 || isMounted)) return undefined;
  const select = 'release' in flags ? '--release' : '--namespace';
  try {
    return await findRelease(client, configuration.namespace, select, stop);
  } catch (error) {
    if (!isCode(error, 'forbidden') || stop.aborted) throw error;
    say(
      'no permission to read the ConfigMap of archwright, so its settings are unknown and its controller is not used; ask for the Role archwright-explain, or ' +
        `set ARCHWRIGHT_NAMESPACE if it is not in the namespace archwright: ${error.message}`,
      'warning',
    );
    return undefined;
  }
}

/** A configuration file replaces the settings of the release: it may be the next one. */
async function releaseContext(
  invocation: Invocation,
  own: CliContext,
  { namespace, name, configuration: text }: Release,
): Promise<CliContext> {
  const settings = { where: `ConfigMap ${namespace}/${name}`, text };
  const context = invocation.sources.file === undefined ? await openCliContext(invocation, settings) : own;
  const { configuration } = context;
  return { ...context, configuration: { ...configuration, namespace: configuration.namespace ?? namespace } };
}

export type Release = NonNullable<ReturnType<typeof releaseIn>>;
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

/**
 * Finds the release by the label of its ConfigMap; without the right to list them, by the usual name.
 * @param namespace where it is; `undefined`: in any
 * @param select the flag that selects one of several, for the message
 * @returns `undefined` if there is none
 * @throws UsageError if there are several; KubeError, `forbidden` if the ConfigMap may not be read
 */
async function findRelease(
  client: KubeClient,
  namespace: string | undefined,
  select: '--release' | '--namespace',
  stop: AbortSignal,
): Promise<Release | undefined> {
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
async function namedRelease(client: KubeClient, place: Place, stop: AbortSignal): Promise<Release> {
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

/** `name`: the chart's `fullname`, which the names of its objects begin with. `configuration`: a TOML file. */
function releaseIn({ metadata, data }: ConfigMap) {
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
  const finding = findRelease(client, undefined, '--namespace', stop);
  const release = await finding.catch(ifCode('forbidden', () => 'forbidden' as const));
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
