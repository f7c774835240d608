/** What a pod depends on: from files first, then from the cluster, until a request to it fails. */
import type { Query } from '../../src/kube/api/transport.ts';
import { unlessAborted } from '../../src/async/wait.ts';
import type { Cluster, ClusterObjects } from '../../src/cluster/cluster.ts';
import type { Input } from '../explain/input.ts';
import { messageOf } from '../../src/names/printable.ts';

export interface PodContext extends Pick<Cluster, 'secret' | 'serviceAccountPullSecrets'> {
  namespaceLabels(namespace: string, signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /** Any object or list of the cluster; `undefined` if it cannot be read. */
  read<T>(path: string, signal: AbortSignal, query?: Query): Promise<T | undefined>;
  nodeArchitecture(node: string, signal: AbortSignal): Promise<string | undefined>;
}

/** A GET by name takes milliseconds, and the result is useful without the cluster too. */
const defaultLimitMs = 3000;

/** @param options.limitMs for one request to the cluster */
export function createPodContext(options: {
  readonly input: Pick<Input, 'secrets' | 'serviceAccounts' | 'namespaces'>;
  readonly cluster: ClusterObjects | undefined;
  readonly warn: (message: string) => void;
  readonly limitMs?: number;
}): PodContext {
  const { input, cluster, warn, limitMs = defaultLimitMs } = options;
  let isIgnored = cluster === undefined;

  async function query<T>(
    read: (objects: ClusterObjects, signal: AbortSignal) => Promise<T | undefined>,
    caller: AbortSignal,
  ): Promise<T | undefined> {
    if (cluster === undefined || isIgnored) return undefined;
    const signal = AbortSignal.any([caller, AbortSignal.timeout(limitMs)]);
    try {
      // A kubeconfig's exec plugin may hang, and it does not get the signal.
      return await unlessAborted(read(cluster, signal), signal);
    } catch (error) {
      caller.throwIfAborted();
      if (!isIgnored) warn(`the cluster cannot be used and is ignored: ${messageOf(error)}`);
      isIgnored = true;
      return undefined;
    }
  }

  return {
    secret: async (namespace, name, signal) => {
      const secret =
        input.secrets.get(`${namespace}/${name}`) ??
        (await query((objects, limit) => objects.secret(namespace, name, limit), signal));
      if (secret === undefined) {
        const where = isIgnored ? 'in the files (the cluster is ignored)' : 'in the files or in the cluster';
        warn(`pull secret ${namespace}/${name} is not ${where}; images are looked up without it`);
      }
      return secret;
    },
    serviceAccountPullSecrets: async (namespace, name, signal) =>
      input.serviceAccounts.get(`${namespace}/${name}`) ??
      (await query((objects, limit) => objects.serviceAccountPullSecrets(namespace, name, limit), signal)) ??
      [],
    read: (path, signal, parameters) =>
      query((objects, limit) => objects.read(path, limit, parameters), signal),
    namespaceLabels: async (namespace, signal) => {
      const labels = input.namespaces.get(namespace);
      // The API server sets this label on each namespace.
      if (labels) return { ...labels, 'kubernetes.io/metadata.name': namespace };
      return (await query((objects, limit) => objects.namespaceLabels(namespace, limit), signal)) ?? {};
    },
    nodeArchitecture: (node, signal) =>
      query((objects, limit) => objects.nodeArchitecture(node, limit), signal),
  };
}
