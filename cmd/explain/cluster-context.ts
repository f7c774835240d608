/**
 * The cluster of the kubeconfig or the pod, archwright in it with its configuration, and who looks up images,
 * for `explain` and `report`.
 */
import { KubeError } from '../../src/kube/api/errors.ts';
import { messageOf } from '../../src/names/printable.ts';
import { openCliContext, openReleaseContext, type CliContext } from '../program/context.ts';
import { UsageError } from '../program/exit.ts';
import { objectName, toggle } from '../program/flag.ts';
import type { Invocation } from '../program/subcommand.ts';
import { openKubernetes, withOwnNamespace, type Kubernetes } from '../wiring/kubernetes.ts';
import { findRelease, namedRelease, type Release } from '../wiring/release.ts';

export interface ClusterContext {
  /** With the settings of the cluster's archwright, if no configuration file is given. */
  readonly context: CliContext;
  readonly kubernetes: Kubernetes | undefined;
  readonly release: Release | undefined;
  /** The controller of the cluster, the agents of the setting `agents`, or this machine. */
  readonly lookupsBy: 'controller' | 'agents' | 'machine';
}

/** Flags of the subcommands that use this. */
export const clusterFlags = {
  local: toggle(
    'Looks up images from this machine with your credentials, not through the cluster’s controller.',
  ),
  asServiceAccount: objectName(
    'Account that authenticates to the controller; it must be allowed to create `imagefacts.arch.example`. Default: `default` in each pod’s namespace.',
  ),
  release: objectName('archwright’s ConfigMap in the cluster. Default: the one that is found.'),
};

/**
 * @param need `optional`: a cluster that cannot be used is ignored with a warning
 * @param opened closes what this opens
 * @throws UsageError, ConfigurationError; KubeError if a needed cluster does not respond
 */
export async function openClusterContext(
  invocation: Invocation<typeof clusterFlags>,
  need: 'needed' | 'optional',
  opened: AsyncDisposableStack,
): Promise<ClusterContext> {
  const { flags, stop, io } = invocation;
  const own = await openCliContext(invocation);
  const { configuration } = own;
  const warn = (message: string): void => io.err(`archwright: warning: ${message}\n`);
  const lookupsBy = configuration.agents.length > 0 && !flags.local ? 'agents' : 'machine';
  const kubernetes = await connect(invocation, own, need, warn);
  const without = { context: own, kubernetes, release: undefined, lookupsBy } as const;
  if (!kubernetes) return without;
  const { client } = kubernetes;
  opened.defer(() => client.close());
  const local = { ...own, configuration: withOwnNamespace(() => configuration, kubernetes)() };
  const named = flags.release;
  if (!named && isOwnPod(invocation, own, kubernetes)) return { ...without, context: local };
  try {
    const release = named
      ? await namedRelease(client, named, stop)
      : await findRelease(client, configuration.namespace, stop);
    if (!release) return { ...without, context: local };
    const context = await openReleaseContext(invocation, own, release);
    const isOfCluster = lookupsBy === 'machine' && !flags.local;
    return { context, kubernetes, release, lookupsBy: isOfCluster ? 'controller' : lookupsBy };
  } catch (error) {
    if (!(error instanceof KubeError) || stop.aborted) throw error;
    if (error.code === 'forbidden' && !named) {
      warn(
        'no permission to read the ConfigMap of archwright, so its settings are unknown and its controller is not used; ask for the Role archwright-explain, or ' +
          `set ARCHWRIGHT_NAMESPACE if it is not in the namespace archwright: ${error.message}`,
      );
      return { ...without, context: local };
    }
    if (need === 'needed') throw error;
    warn(`the cluster cannot be used and is ignored: ${error.message}`);
    return { ...without, kubernetes: undefined };
  }
}

/** A pod of archwright has the configuration in a file, and may not read the ConfigMap. */
function isOwnPod(
  { sources, io }: Invocation,
  { configuration }: CliContext,
  { podNamespace }: Kubernetes,
): boolean {
  const isMounted = sources.file !== undefined && sources.file === io.env['ARCHWRIGHT_CONFIG'];
  return podNamespace !== undefined && (configuration.agents.length > 0 || isMounted);
}

/** A kubeconfig that was named explicitly must be valid. */
async function connect(
  { io }: Invocation,
  { configuration }: CliContext,
  need: 'needed' | 'optional',
  warn: (message: string) => void,
): Promise<Kubernetes | undefined> {
  const isNamed = configuration.kubeconfig !== undefined || configuration.kubeContext !== undefined;
  try {
    const kubernetes = await openKubernetes(configuration, io.env, 'own kubeconfig');
    if (kubernetes || need === 'optional') return kubernetes;
  } catch (error) {
    if (isNamed || need === 'needed') throw new UsageError(messageOf(error));
    warn(`the cluster of the kubeconfig is ignored: ${messageOf(error)}`);
    return undefined;
  }
  throw new UsageError('no cluster found; set --kubeconfig');
}
