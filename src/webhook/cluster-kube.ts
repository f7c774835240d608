/** The webhook's view of a real cluster: two watches, trimmed to what is asked of them, and GETs by name. */
import type { KubeClient } from '../kube/client.ts';
import { startReflector } from '../kube/reflector.ts';
import type { Log } from '../telemetry/log.ts';
import type { Cluster } from './cluster.ts';
import { architectureOf, clusterObjects } from './cluster-objects.ts';

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
    trim: architectureOf,
    log,
  });

  const objects = clusterObjects({ client, log });

  return {
    namespaceLabels: (namespace) => namespaces.get('', namespace) ?? noLabels,
    nodeArchitecture: (node) => nodes.get('', node),
    secret: objects.secret,
    serviceAccountPullSecrets: objects.serviceAccountPullSecrets,
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
