/**
 * The cluster state that a decision needs. Two trimmed watches keep labels and architectures in memory.
 * Secrets and service accounts are read by name, only if an image is unknown without them.
 */
import { pullSecretNames } from '../credentials/sources/pull-secrets.ts';
import type { KubeClient } from '../kube/api/client.ts';
import type { Query } from '../kube/api/transport.ts';
import { isCode } from '../kube/api/errors.ts';
import type { KubeObject, Node, Secret, ServiceAccount } from '../kube/api/objects.ts';
import { paths } from '../kube/api/paths.ts';
import { startReflector } from '../kube/watch/reflector.ts';
import { architectureOf, classify } from '../nodes/classify.ts';
import type { NodeReport } from '../nodes/node-report.ts';
import { createNodeClasses, createNodeHostnames, pooledNode } from './nodes.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';

export type Cluster = ReturnType<typeof connectCluster>;

const noLabels: Readonly<Record<string, string>> = {};

/** Starts watching namespaces and nodes. `client` is closed together with the cluster. */
export function connectCluster(options: {
  readonly client: KubeClient;
  readonly log: Log;
  readonly metrics?: Metrics;
}) {
  const { client } = options;
  const namespaces = startReflector({
    ...options,
    path: paths.namespaces(),
    trim: ({ metadata }) => metadata?.labels ?? noLabels,
  });
  const nodes = startReflector({
    ...options,
    path: paths.nodes(),
    trim: (node: Node) => ({
      architecture: architectureOf(node),
      classified: classify(node),
      ...pooledNode(node.metadata?.labels),
    }),
  });
  const { secret, serviceAccountPullSecrets } = clusterObjects(options);
  return {
    /** Labels of a namespace; empty if it is unknown. */
    namespaceLabels: (namespace: string) => namespaces.get('', namespace) ?? noLabels,
    nodeArchitecture: (node: string) => nodes.get('', node)?.architecture,
    /** Hostnames of the nodes that each agent answers for. */
    nodeHostnames: createNodeHostnames(nodes),
    /** @param reports of the agents, by node */
    nodeClasses: (reports?: () => ReadonlyMap<string, NodeReport>) => createNodeClasses(nodes, reports),
    secret,
    serviceAccountPullSecrets,
    ready: async (signal: AbortSignal): Promise<void> => {
      await Promise.all([namespaces.ready(signal), nodes.ready(signal)]);
    },
    close: (): void => {
      namespaces.stop();
      nodes.stop();
      client.close();
    },
  };
}

export type ClusterObjects = ReturnType<typeof clusterObjects>;

/**
 * Reads objects by name, which are `undefined` if they do not exist or may not be read. All throw KubeError if the
 * cluster gives no answer.
 * @param options.onForbidden called with each path that may not be read
 */
export function clusterObjects(options: {
  readonly client: KubeClient;
  readonly log: Log;
  readonly onForbidden?: (path: string) => void;
}) {
  const { client, log, onForbidden } = options;

  /** A missing or forbidden object is left out, as the kubelet leaves out a missing pull secret. */
  async function read<T>(path: string, signal: AbortSignal, query: Query = {}): Promise<T | undefined> {
    try {
      return await client.get<T>(path, { signal, query });
    } catch (error) {
      if (!isCode(error, 'not-found', 'forbidden')) throw error;
      log.debug({ path, code: error.code }, 'object cannot be read');
      if (error.code === 'forbidden') onForbidden?.(path);
      return undefined;
    }
  }

  return {
    /** Any object or list. */
    read,
    secret: (namespace: string, name: string, signal: AbortSignal) =>
      read<Secret>(paths.secrets(namespace, name), signal),
    /** Names of the pull secrets of a service account, for templates that admission has not completed. */
    serviceAccountPullSecrets: async (namespace: string, name: string, signal: AbortSignal) => {
      const account = await read<ServiceAccount>(paths.serviceAccounts(namespace, name), signal);
      return pullSecretNames(account ?? {});
    },
    namespaceLabels: async (name: string, signal: AbortSignal) => {
      const namespace = await read<KubeObject>(paths.namespaces(name), signal);
      return namespace && (namespace.metadata?.labels ?? {});
    },
    nodeArchitecture: async (name: string, signal: AbortSignal) => {
      const node = await read<Node>(paths.nodes(name), signal);
      return node && architectureOf(node);
    },
  };
}
