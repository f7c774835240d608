/** Objects of a cluster as the API server has them, with defaults. */
import type { KubeStore } from '../support/kube-store.ts';

/** An owner that controls its pods. Default: of the group apps, with its name as uid. */
export function controllerRef(kind: string, name: string, more: { uid?: string; apiVersion?: string } = {}) {
  return { apiVersion: 'apps/v1', kind, name, uid: name, controller: true, ...more };
}

/** The status of a node that is ready. */
export function nodeStatus(architecture: string, operatingSystem = 'linux') {
  return { nodeInfo: { architecture, operatingSystem }, conditions: [readyIs(true)] };
}

export function readyIs(ready: boolean) {
  return { type: 'Ready', status: ready ? 'True' : 'False' };
}

/** The data of a ConfigMap. */
export function dataAt(store: KubeStore, path: string): Readonly<Record<string, string>> {
  return (store.get(path) as { data?: Record<string, string> } | undefined)?.data ?? {};
}

/** A ReplicaSet of a Deployment. */
export function putReplicaSet(
  store: KubeStore,
  name: string,
  deployment: ReturnType<typeof controllerRef>,
  { namespace = 'shop', uid = name, ...more }: { namespace?: string; uid?: string; spec?: object } = {},
): void {
  store.put(`/apis/apps/v1/namespaces/${namespace}/replicasets/${name}`, {
    metadata: { name, namespace, uid, ownerReferences: [deployment] },
    ...more,
  });
}
