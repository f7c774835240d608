/** Access to a cluster: by the settings `kubeconfig` and `kubeContext`, or in a pod. */
import { inClusterAccess, kubeconfigAccess } from '../../src/kube/api/access.ts';
import { createKubeClient, type KubeClient } from '../../src/kube/api/client.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import type { Streams } from '../program/subcommand.ts';
import { programVersion } from '../program/version.ts';
import { derived } from '../../src/policy/configuration/live.ts';

export type Kubernetes = NonNullable<Awaited<ReturnType<typeof openKubernetes>>>;

/** @param fallBack the user's own kubeconfig, if neither setting is set and this is not a pod */
export async function openKubernetes(
  { kubeconfig, kubeContext }: Pick<Configuration, 'kubeconfig' | 'kubeContext'>,
  env: Streams['env'],
  fallBack: 'own kubeconfig' | 'none',
  metrics?: Metrics,
) {
  const named = kubeconfig !== undefined || kubeContext !== undefined;
  const inCluster = named ? undefined : await inClusterAccess(env);
  let access = inCluster;
  if (named || (access === undefined && fallBack === 'own kubeconfig')) {
    access = await kubeconfigAccess({ path: kubeconfig, context: kubeContext });
  }
  if (access === undefined) return undefined;
  const userAgent = `archwright/${programVersion.version}`;
  /** Creates a client with its own connections and time limit, so that no other request delays it. */
  const another = (timeoutMs?: number): KubeClient =>
    createKubeClient({ access, userAgent, metrics, timeoutMs });
  /** Namespace of this process's pod; `undefined` outside a cluster. */
  const podNamespace = inCluster?.namespace;
  return { access, client: another(), another, podNamespace };
}

/** The configuration with archwright's own namespace. Default: the namespace of the pod's service account. */
export function withOwnNamespace(
  configuration: () => Configuration,
  { podNamespace }: Pick<Kubernetes, 'podNamespace'>,
): () => Configuration {
  return derived(configuration, (from) =>
    from.namespace !== undefined || podNamespace === undefined ? from : { ...from, namespace: podNamespace },
  );
}
