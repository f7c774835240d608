/** Objects read by name, one GET for each. */
import { paths } from '../kube/api/paths.ts';
import { KubeError } from '../kube/api/errors.ts';
import type { KubeClient, Query } from '../kube/api/client.ts';
import type { KubeObject, Node, Secret, ServiceAccount } from '../kube/api/objects.ts';
import type { Log } from '../telemetry/log.ts';
import type { Cluster } from './cluster.ts';

/** All throw KubeError where the cluster gives no answer. */
export interface ClusterObjects extends Pick<Cluster, 'secret' | 'serviceAccountPullSecrets'> {
  /** Labels of a namespace; `undefined` where it does not exist or may not be read. */
  namespaceLabels(name: string, signal: AbortSignal): Promise<Readonly<Record<string, string>> | undefined>;
  /** Any object or list; `undefined` where it does not exist or may not be read. */
  read<T>(path: string, signal: AbortSignal, query?: Query): Promise<T | undefined>;
  /** Architecture of a node; `undefined` where it is not known. */
  nodeArchitecture(name: string, signal: AbortSignal): Promise<string | undefined>;
}

const architectureLabel = 'kubernetes.io/arch';

export interface ClusterObjectsOptions {
  readonly client: KubeClient;
  readonly log: Log;
  /** Called with each path that may not be read. */
  readonly onForbidden?: (path: string) => void;
}

/** Makes the reader; it holds nothing that needs to be closed. */
export function clusterObjects(options: ClusterObjectsOptions): ClusterObjects {
  const { client, log, onForbidden } = options;

  /** What does not exist or may not be read is left out, as the kubelet leaves out a missing pull secret. */
  async function read<T>(path: string, signal: AbortSignal, query: Query = {}): Promise<T | undefined> {
    try {
      return await client.get<T>(path, { signal, query });
    } catch (error) {
      if (!(error instanceof KubeError) || (error.code !== 'not-found' && error.code !== 'forbidden'))
        throw error;
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

/**
 * The node's own report comes before the label, which people can overwrite. Of a node that has not reported yet, or never does
 * (virtual ones), the API server writes an empty text.
 */
export function architectureOf(node: Node): string | undefined {
  return node.status?.nodeInfo?.architecture || node.metadata?.labels?.[architectureLabel];
}
