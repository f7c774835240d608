/** The webhook's view of a real cluster: two trimmed watches, and GETs by name. */
import type { KubeClient } from '../kube/api/client.ts';
import { startReflector } from '../kube/watch/reflector.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Cluster } from './cluster.ts';
import type { Node } from '../kube/api/objects.ts';
import { architectureOf, clusterObjects } from './objects.ts';
import { paths } from '../kube/api/paths.ts';

const noLabels: Readonly<Record<string, string>> = {};

const hostnameLabel = 'kubernetes.io/hostname';

interface KnownNode {
  readonly architecture: string | undefined;
  readonly hostname: string | undefined;
}

function trimNode(node: Node): KnownNode {
  return { architecture: architectureOf(node), hostname: node.metadata?.labels?.[hostnameLabel] };
}

/**
 * Starts watching namespaces and nodes.
 * @param options.client is closed together with the cluster
 */
export function connectCluster(options: {
  readonly client: KubeClient;
  readonly log: Log;
  readonly metrics?: Metrics;
}): Cluster {
  const { client, log } = options;
  const counted = options.metrics && { metrics: options.metrics };
  const namespaces = startReflector({
    client,
    path: paths.namespaces(),
    trim: (object) => object.metadata?.labels ?? noLabels,
    log,
    ...counted,
  });
  const nodes = startReflector({
    client,
    path: paths.nodes(),
    trim: trimNode,
    log,
    ...counted,
  });

  const objects = clusterObjects({ client, log });

  return {
    namespaceLabels: (namespace) => namespaces.get('', namespace) ?? noLabels,
    nodeArchitecture: (node) => nodes.get('', node)?.architecture,
    nodeHostname: (node) => nodes.get('', node)?.hostname,
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
