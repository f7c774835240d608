/** The webhook's view of a real cluster: two watches, trimmed to what is asked of them, and GETs by name. */
import { KubeError } from '../kube/errors.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Node, Secret, ServiceAccount } from '../kube/objects.ts';
import { startReflector } from '../kube/reflector.ts';
import type { Log } from '../telemetry/log.ts';
import type { Cluster } from './cluster.ts';

const architectureLabel = 'kubernetes.io/arch';
const noLabels: Readonly<Record<string, string>> = {};

/**
 * Starts watching namespaces and nodes.
 * @param options.client is closed together with the cluster
 */
export function connectCluster(options: { readonly client: KubeClient; readonly log: Log }): Cluster {
  const { client, log } = options;
  const namespaces = startReflector({
    client,
    path: '/api/v1/namespaces',
    trim: (object) => object.metadata?.labels ?? noLabels,
    log,
  });
  const nodes = startReflector({
    client,
    path: '/api/v1/nodes',
    // The node's own report comes before the label, which people can overwrite.
    trim: (object: Node) =>
      object.status?.nodeInfo?.architecture ?? object.metadata?.labels?.[architectureLabel],
    log,
  });

  /** What does not exist or may not be read is left out, as the kubelet leaves out a missing pull secret. */
  async function read<T>(path: string, signal: AbortSignal): Promise<T | undefined> {
    try {
      return await client.get<T>(path, { signal });
    } catch (error) {
      if (!(error instanceof KubeError) || (error.code !== 'not-found' && error.code !== 'forbidden'))
        throw error;
      log.debug({ path, code: error.code }, 'object cannot be read');
      return undefined;
    }
  }

  return {
    namespaceLabels: (namespace) => namespaces.get('', namespace) ?? noLabels,
    nodeArchitecture: (node) => nodes.get('', node),
    secret: (namespace, name, signal) => read<Secret>(objectPath(namespace, 'secrets', name), signal),
    serviceAccountPullSecrets: async (namespace, name, signal) => {
      const account = await read<ServiceAccount>(objectPath(namespace, 'serviceaccounts', name), signal);
      return (account?.imagePullSecrets ?? []).flatMap((reference) => reference.name || []);
    },
    ready: async (signal) => {
      await Promise.all([namespaces.ready(signal), nodes.ready(signal)]);
    },
    close: () => {
      namespaces.stop();
      nodes.stop();
      client.close();
    },
  };
}

function objectPath(namespace: string, resource: string, name: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/${resource}/${encodeURIComponent(name)}`;
}
