/** Access to a cluster, from the settings `kubeconfig` and `kubeContext` or from inside of one. */
import { inClusterAccess, kubeconfigAccess, type KubeAccess } from '../src/kube/access.ts';
import { createKubeClient, type KubeClient } from '../src/kube/client.ts';
import type { Configuration } from '../src/policy/configuration.ts';
import type { Invocation } from './subcommand.ts';
import { programVersion } from './version.ts';

export interface Kubernetes {
  readonly access: KubeAccess;
  readonly client: KubeClient;
}

/**
 * Connects to a cluster where there is one.
 * @param fallBack where neither setting is set and this is no pod: whether the user's own kubeconfig counts
 */
export async function openKubernetes(
  { kubeconfig, kubeContext }: Pick<Configuration, 'kubeconfig' | 'kubeContext'>,
  { io }: { readonly io: Pick<Invocation['io'], 'env'> },
  fallBack: 'own kubeconfig' | 'none',
): Promise<Kubernetes | undefined> {
  const named = kubeconfig !== undefined || kubeContext !== undefined;
  let access = named ? undefined : await inClusterAccess(io.env);
  if (named || (access === undefined && fallBack === 'own kubeconfig')) {
    access = await kubeconfigAccess({
      ...(kubeconfig !== undefined && { path: kubeconfig }),
      ...(kubeContext !== undefined && { context: kubeContext }),
    });
  }
  if (access === undefined) return undefined;
  return { access, client: createKubeClient({ access, userAgent: `archwright/${programVersion.version}` }) };
}
