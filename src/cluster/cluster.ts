/**
 * The cluster state that a decision needs. Two trimmed watches keep labels and architectures in memory.
 * Secrets and service accounts are read by name, only if an image is unknown without them.
 */
import type { KubeClient } from '../kube/api/client.ts';
import type { Query } from '../kube/api/transport.ts';
import { isCode } from '../kube/api/errors.ts';
import type { KubeObject, Node, Secret, ServiceAccount } from '../kube/api/objects.ts';
import { paths } from '../kube/api/paths.ts';
import { startReflector } from '../kube/watch/reflector.ts';
import { architectureOf, classify } from '../nodes/classify.ts';
import type { NodeReport } from '../nodes/node-report.ts';
import { createNodeClasses, type CurrentNodeClasses } from './node-classes.ts';
import { createNodeHostnames, pooledNode, type NodeHostnames } from './node-hostnames.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';

export interface Cluster {
  /** Labels of a namespace; empty if it is unknown. */
  namespaceLabels(namespace: string): Readonly<Record<string, string>>;
  nodeArchitecture(node: string): string | undefined;
  /** Hostnames of the nodes that each agent answers for. */
  readonly nodeHostnames: NodeHostnames;
  /** @param reports of the agents, by node */
  nodeClasses(reports?: () => ReadonlyMap<string, NodeReport>): CurrentNodeClasses;
  /** A Secret by name, or `undefined` if it does not exist or cannot be read. */
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined>;
  /** Names of the pull secrets of a service account, for templates that admission has not completed. */
  serviceAccountPullSecrets(namespace: string, name: string, signal: AbortSignal): Promise<readonly string[]>;
  ready(signal: AbortSignal): Promise<void>;
  close(): void;
}

const noLabels: Readonly<Record<string, string>> = {};

/** Starts watching namespaces and nodes. `client` is closed together with the cluster. */
export function connectCluster(options: {
  readonly client: KubeClient;
  readonly log: Log;
  readonly metrics?: Metrics;
}): Cluster {
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
    namespaceLabels: (namespace) => namespaces.get('', namespace) ?? noLabels,
    nodeArchitecture: (node) => nodes.get('', node)?.architecture,
    nodeHostnames: createNodeHostnames(nodes),
    nodeClasses: (reports) => createNodeClasses(nodes, reports),
    secret,
    serviceAccountPullSecrets,
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

/** All throw KubeError if the cluster gives no answer. */
export interface ClusterObjects extends Pick<Cluster, 'secret' | 'serviceAccountPullSecrets'> {
  /** Labels of a namespace; `undefined` if it does not exist or may not be read. */
  namespaceLabels(name: string, signal: AbortSignal): Promise<Readonly<Record<string, string>> | undefined>;
  /** Any object or list; `undefined` if it does not exist or may not be read. */
  read<T>(path: string, signal: AbortSignal, query?: Query): Promise<T | undefined>;
  nodeArchitecture(name: string, signal: AbortSignal): Promise<string | undefined>;
}

/** @param options.onForbidden called with each path that may not be read */
export function clusterObjects(options: {
  readonly client: KubeClient;
  readonly log: Log;
  readonly onForbidden?: (path: string) => void;
}): ClusterObjects {
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
    read,
    secret: (namespace, name, signal) => read<Secret>(paths.secrets(namespace, name), signal),
    serviceAccountPullSecrets: async (namespace, name, signal) => {
      const account = await read<ServiceAccount>(paths.serviceAccounts(namespace, name), signal);
      return (account?.imagePullSecrets ?? []).flatMap((reference) => reference.name || []);
    },
    namespaceLabels: async (name, signal) => {
      const namespace = await read<KubeObject>(paths.namespaces(name), signal);
      return namespace && (namespace.metadata?.labels ?? {});
    },
    nodeArchitecture: async (name, signal) => {
      const node = await read<Node>(paths.nodes(name), signal);
      return node && architectureOf(node);
    },
  };
}
