/**
 * Whether a workload is whole again: it says itself how many ready pods it has and wants. Of one that does not, because it is
 * of a kind that we do not know, or may not be read, as many pods have to be ready as were when the cleaning began.
 */
import type { Query } from '../../kube/api/client.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { KubeObject, OwnerReference, Pod } from '../../kube/api/objects.ts';
import type { Cleaning } from './steps.ts';
import { namespacedPath, paths } from '../../kube/api/paths.ts';

export interface Restarted {
  readonly namespace: string;
  readonly owner: OwnerReference;
  /** Of its pods, with and without our tolerations, that were ready when the cleaning began. */
  readonly readyAtFirst: number;
}

export interface Readiness {
  readonly ready: number;
  readonly wanted: number;
  /** Whether all pods of a namespace had to be read for it. */
  readonly isCostly: boolean;
}

/** Fields of ReplicaSet, StatefulSet and ReplicationController. */
interface Workload extends KubeObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly readyReplicas?: number };
}

const collections: Readonly<Record<string, string>> = {
  'apps/v1/ReplicaSet': 'replicasets',
  'apps/v1/StatefulSet': 'statefulsets',
  'v1/ReplicationController': 'replicationcontrollers',
};

/** @throws KubeError */
export async function readinessOf(cleaning: Cleaning, restarted: Restarted): Promise<Readiness> {
  return (await bySelf(cleaning, restarted)) ?? (await byPods(cleaning, restarted));
}

async function bySelf(cleaning: Cleaning, { namespace, owner }: Restarted): Promise<Readiness | undefined> {
  const path = pathOf(namespace, owner);
  if (path === undefined) return undefined;
  try {
    const { spec, status } = (await cleaning.read<Workload>(path)) ?? {};
    return { ready: status?.readyReplicas ?? 0, wanted: spec?.replicas ?? 0, isCostly: false };
  } catch (error) {
    if (error instanceof KubeError && error.code === 'forbidden') return undefined;
    throw error;
  }
}

async function byPods(cleaning: Cleaning, { namespace, owner, readyAtFirst }: Restarted): Promise<Readiness> {
  let ready = 0;
  for await (const pod of podsOnce(cleaning, paths.pods(namespace)))
    if (controllerOf(pod)?.uid === owner.uid && isReady(pod)) ready += 1;
  return { ready, wanted: readyAtFirst, isCostly: true };
}

/**
 * Every pod of a collection; none twice, although a list whose pages expire begins anew.
 * @throws KubeError
 */
export async function* podsOnce(cleaning: Cleaning, path: string, query?: Query): AsyncIterable<Pod> {
  const seen = new Set<string>();
  for await (const pod of cleaning.list<Pod>(path, query)) {
    const { uid = '' } = pod.metadata ?? {};
    if (seen.has(uid)) continue;
    seen.add(uid);
    yield pod;
  }
}

function pathOf(namespace: string, { apiVersion, kind, name }: OwnerReference): string | undefined {
  const collection = collections[`${apiVersion}/${kind}`];
  return collection && namespacedPath(apiVersion, collection)(namespace, name);
}

export function controllerOf({ metadata }: KubeObject): OwnerReference | undefined {
  return metadata?.ownerReferences?.find(({ controller }) => controller === true);
}

interface PodWithStatus extends Pod {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** Whether a pod is ready, and to stay. */
export function isReady({ metadata, status }: PodWithStatus): boolean {
  if (metadata?.deletionTimestamp !== undefined) return false;
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
}
