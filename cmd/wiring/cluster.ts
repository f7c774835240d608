/** The cluster of a person's command: of a kubeconfig, or of the pod, and archwright's settings in it. */
import { isCode, KubeError } from '../../src/kube/api/errors.ts';
import { messageOf } from '../../src/names/printable.ts';
import { close, openCliContext, type CliContext } from '../program/context.ts';
import { UsageError } from '../program/exit.ts';
import { objectName } from '../program/flag.ts';
import type { Invocation } from '../program/subcommand.ts';
import { openKubernetes, withOwnNamespace, type Kubernetes } from './kubernetes.ts';
import { findRelease, namedRelease, type Release } from './release.ts';

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
    return await findRelease({ client, namespace: configuration.namespace, select, stop });
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
