/** Access to a cluster, from the settings `kubeconfig` and `kubeContext` or from inside of one. */
import { inClusterAccess, kubeconfigAccess, type KubeAccess } from '../../src/kube/api/access.ts';
import { createKubeClient, type KubeClient } from '../../src/kube/api/client.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import type { Invocation } from '../program/subcommand.ts';
import { programVersion } from '../program/version.ts';

export interface Kubernetes {
  readonly access: KubeAccess;
  readonly client: KubeClient;
  /** Makes another client with connections of its own, which nothing else that waits can stand before. */
  readonly another: () => KubeClient;
  /** Namespace of the pod that this process runs in; `undefined` outside of a cluster. */
  readonly podNamespace: string | undefined;
}

/**
 * Connects to a cluster where there is one.
 * @param fallBack where neither setting is set and this is no pod: whether the user's own kubeconfig counts
 * @param metrics where requests are counted
 */
export async function openKubernetes(
  { kubeconfig, kubeContext }: Pick<Configuration, 'kubeconfig' | 'kubeContext'>,
  { io }: { readonly io: Pick<Invocation['io'], 'env'> },
  fallBack: 'own kubeconfig' | 'none',
  metrics?: Metrics,
): Promise<Kubernetes | undefined> {
  const named = kubeconfig !== undefined || kubeContext !== undefined;
  const inCluster = named ? undefined : await inClusterAccess(io.env);
  let access = inCluster;
  if (named || (access === undefined && fallBack === 'own kubeconfig')) {
    access = await kubeconfigAccess({
      ...(kubeconfig !== undefined && { path: kubeconfig }),
      ...(kubeContext !== undefined && { context: kubeContext }),
    });
  }
  if (access === undefined) return undefined;
  const userAgent = `archwright/${programVersion.version}`;
  const options = { access, userAgent, ...(metrics && { metrics }) };
  const another = (): KubeClient => createKubeClient(options);
  return { access, client: another(), another, podNamespace: inCluster?.namespace };
}

/**
 * The configuration with the namespace that archwright runs in: where none is set, that of the pod's service account.
 * The same configuration gives the same object each time.
 */
export function withOwnNamespace(
  configuration: () => Configuration,
  { podNamespace }: Pick<Kubernetes, 'podNamespace'>,
): () => Configuration {
  let last: { readonly from: Configuration; readonly to: Configuration } | undefined;
  return () => {
    const from = configuration();
    if (from.namespace !== undefined || podNamespace === undefined) return from;
    if (last?.from !== from) last = { from, to: { ...from, namespace: podNamespace } };
    return last.to;
  };
}
