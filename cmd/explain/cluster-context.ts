/**
 * The cluster of the kubeconfig or the pod, archwright in it with its configuration, and who looks up images,
 * for `explain` and `report`.
 */
import { KubeError } from '../../src/kube/api/errors.ts';
import { messageOf } from '../../src/names/printable.ts';
import { openCliContext, openReleaseContext, type CliContext } from '../program/context.ts';
import { serviceAccountIn } from '../program/service-account.ts';
import { UsageError, type Invocation } from '../program/subcommand.ts';
import { openKubernetes, withOwnNamespace, type Kubernetes } from '../wiring/kubernetes.ts';
import { findRelease, namedRelease, type Release } from '../wiring/release.ts';

export interface ClusterContext {
  /** With the settings of the cluster's archwright, if no configuration file is given. */
  readonly context: CliContext;
  readonly kubernetes: Kubernetes | undefined;
  readonly release: Release | undefined;
  /** The controller of the cluster, the agents of the setting `agents`, or this machine. */
  readonly asks: 'cluster' | 'agents' | 'machine';
}

/** Flags of the subcommands that use this. */
export const clusterFlags = {
  local: {
    help: 'Looks up images from this machine, with your credentials, not by the cluster’s controller.',
  },
  'as-service-account': {
    value: 'NAMESPACE/NAME',
    help: 'Account that authenticates to the controller; it must be allowed to create `imagefacts.arch.example`. Default: `default` in each pod’s namespace.',
  },
  release: {
    value: 'NAMESPACE/NAME',
    help: 'archwright’s ConfigMap in the cluster. Default: it is searched for.',
  },
} as const;

/**
 * @param need `named`: a cluster that does not respond is an error; `optional`: it is ignored with a warning
 * @param opened closes what this opens
 * @throws UsageError, ConfigurationError; KubeError if a needed cluster does not respond
 */
export async function openClusterContext(
  invocation: Invocation,
  need: 'needed' | 'optional',
  opened: AsyncDisposableStack,
): Promise<ClusterContext> {
  const own = await openCliContext(invocation);
  const warn = (message: string): void => invocation.io.err(`archwright: warning: ${message}\n`);
  const kubernetes = await connect(invocation, own, need, warn);
  if (!kubernetes)
    return { context: own, kubernetes, release: undefined, asks: asksWithout(invocation, own) };
  opened.defer(() => kubernetes.client.close());
  const local = withNamespace(own, kubernetes);
  const named = serviceAccountIn(invocation.flags, 'release');
  if (!named && isOwnPod(invocation, own, kubernetes))
    return { context: local, kubernetes, release: undefined, asks: asksWithout(invocation, own) };
  try {
    const { client } = kubernetes;
    const release = named
      ? await namedRelease(client, named, invocation.stop)
      : await findRelease(client, own.configuration.namespace, invocation.stop);
    if (!release) return { context: local, kubernetes, release, asks: asksWithout(invocation, own) };
    const context = await openReleaseContext(invocation, own, release);
    const asks = asksWithout(invocation, own);
    return {
      context,
      kubernetes,
      release,
      asks: asks === 'machine' && !invocation.flags.has('local') ? 'cluster' : asks,
    };
  } catch (error) {
    if (!(error instanceof KubeError) || invocation.stop.aborted) throw error;
    if (error.code === 'forbidden' && !named) {
      warn(
        'no permission to read the ConfigMap of archwright, so its settings are not known and it is not asked; set ' +
          `ARCHWRIGHT_NAMESPACE if it is not in the namespace archwright: ${error.message}`,
      );
      return { context: local, kubernetes, release: undefined, asks: asksWithout(invocation, own) };
    }
    if (need === 'needed') throw error;
    warn(`the cluster does not respond and is ignored: ${error.message}`);
    return { context: own, kubernetes: undefined, release: undefined, asks: asksWithout(invocation, own) };
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

function asksWithout({ flags }: Invocation, { configuration }: CliContext): 'agents' | 'machine' {
  return configuration.agents.length > 0 && !flags.has('local') ? 'agents' : 'machine';
}

function withNamespace(context: CliContext, kubernetes: Kubernetes): CliContext {
  return { ...context, configuration: withOwnNamespace(() => context.configuration, kubernetes)() };
}

/** A cluster that was named explicitly must be reachable. The default one may be optional. */
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
