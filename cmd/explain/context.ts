/**
 * What a pod's decision depends on besides the pod: pull secrets, service accounts, labels of its namespace. Files come
 * first, then the cluster, which is asked by name. A cluster that does not answer is left alone from then on, and
 * everything is decided without it.
 */
import type { Query } from '../../src/kube/api/client.ts';
import type { Cluster } from '../../src/cluster/cluster.ts';
import { unlessAborted } from '../../src/async/wait.ts';
import type { ClusterObjects } from '../../src/cluster/objects.ts';
import type { Input } from './input.ts';

export interface PodContext extends Pick<Cluster, 'secret' | 'serviceAccountPullSecrets'> {
  namespaceLabels(namespace: string, signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /** Any object or list of the cluster; `undefined` where there is none to be had. */
  read<T>(path: string, signal: AbortSignal, query?: Query): Promise<T | undefined>;
  /** Architecture of the node that a pod runs on already. */
  nodeArchitecture(node: string, signal: AbortSignal): Promise<string | undefined>;
}

export interface PodContextOptions {
  readonly input: Pick<Input, 'secrets' | 'serviceAccounts' | 'namespaces'>;
  readonly cluster: ClusterObjects | undefined;
  /** Tells a person one line. */
  readonly warn: (message: string) => void;
  /** Limit for one question to the cluster, milliseconds. */
  readonly limitMs?: number;
}

/** A GET by name takes milliseconds; a person waits, and the answer is good without the cluster too. */
const defaultLimitMs = 3000;

export function createPodContext(options: PodContextOptions): PodContext {
  const { input, cluster, warn, limitMs = defaultLimitMs } = options;
  const told = new Set<string>();
  let isGone = cluster === undefined;

  async function ask<T>(
    question: (objects: ClusterObjects, signal: AbortSignal) => Promise<T | undefined>,
    asker: AbortSignal,
  ): Promise<T | undefined> {
    if (cluster === undefined || isGone) return undefined;
    const signal = AbortSignal.any([asker, AbortSignal.timeout(limitMs)]);
    try {
      // What proves who we are may be a program that hangs, and it does not know the signal.
      return await unlessAborted(question(cluster, signal), signal);
    } catch (error) {
      asker.throwIfAborted();
      if (!isGone) warn(`the cluster gives no answer and is left out: ${messageOf(error)}`);
      isGone = true;
      return undefined;
    }
  }

  function warnOnce(message: string): void {
    if (told.has(message)) return;
    told.add(message);
    warn(message);
  }

  return {
    secret: async (namespace, name, signal) => {
      const secret =
        input.secrets.get(`${namespace}/${name}`) ??
        (await ask((objects, limit) => objects.secret(namespace, name, limit), signal));
      if (secret === undefined) {
        const where = isGone ? 'in the files, and no cluster is asked' : 'in the files or the cluster';
        warnOnce(`there is no pull secret ${namespace}/${name} ${where}; images are asked without it`);
      }
      return secret;
    },
    serviceAccountPullSecrets: async (namespace, name, signal) =>
      input.serviceAccounts.get(`${namespace}/${name}`) ??
      (await ask((objects, limit) => objects.serviceAccountPullSecrets(namespace, name, limit), signal)) ??
      [],
    read: (path, signal, query) => ask((objects, limit) => objects.read(path, limit, query), signal),
    namespaceLabels: async (namespace, signal) =>
      labelsInFiles(input, namespace) ??
      (await ask((objects, limit) => objects.namespaceLabels(namespace, limit), signal)) ??
      {},
    nodeArchitecture: (node, signal) =>
      ask((objects, limit) => objects.nodeArchitecture(node, limit), signal),
  };
}

/** With the label that the API server gives each namespace. */
function labelsInFiles(
  { namespaces }: Pick<Input, 'namespaces'>,
  namespace: string,
): Readonly<Record<string, string>> | undefined {
  const labels = namespaces.get(namespace);
  return labels && { ...labels, 'kubernetes.io/metadata.name': namespace };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
