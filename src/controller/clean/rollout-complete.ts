/**
 * Whether all pods of a workload are ready again. The workload says how many ready pods it has and wants. If its kind is unknown or it may
 * not be read, as many pods must be ready as when the run began.
 */
import type { Query } from '../../kube/api/client.ts';
import { isCode } from '../../kube/api/errors.ts';
import type { KubeObject, OwnerReference, Pod } from '../../kube/api/objects.ts';
import { controllerOf, ownerPath } from '../scope/workload.ts';
import { paths } from '../../kube/api/paths.ts';
import type { CleanRun } from './run.ts';

export interface RestartedWorkload {
  readonly namespace: string;
  readonly owner: OwnerReference;
  /** How many of its pods, with and without our tolerations, were ready when the run began. */
  readonly readyAtFirst: number;
}

export interface Readiness {
  readonly ready: number;
  readonly wanted: number;
  /** Whether all pods of a namespace had to be read. */
  readonly isCostly: boolean;
}

/** Fields of ReplicaSet, StatefulSet and ReplicationController. */
interface Owner extends KubeObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly readyReplicas?: number };
}

/** @throws KubeError */
export async function readinessOf(run: CleanRun, workload: RestartedWorkload): Promise<Readiness> {
  return (await readinessOfOwner(run, workload)) ?? (await readinessOfPods(run, workload));
}

async function readinessOfOwner(
  run: CleanRun,
  { namespace, owner }: RestartedWorkload,
): Promise<Readiness | undefined> {
  const path = ownerPath(namespace, owner);
  if (path === undefined) return undefined;
  try {
    const { spec, status } = (await run.read<Owner>(path)) ?? {};
    return { ready: status?.readyReplicas ?? 0, wanted: spec?.replicas ?? 0, isCostly: false };
  } catch (error) {
    if (isCode(error, 'forbidden')) return undefined;
    throw error;
  }
}

async function readinessOfPods(
  run: CleanRun,
  { namespace, owner, readyAtFirst }: RestartedWorkload,
): Promise<Readiness> {
  let ready = 0;
  for await (const pod of podsOnce(run, paths.pods(namespace)))
    if (controllerOf(pod)?.uid === owner.uid && isReady(pod)) ready += 1;
  return { ready, wanted: readyAtFirst, isCostly: true };
}

/**
 * Every pod of a collection, each once: a list that expires is read again from its beginning.
 * @throws KubeError
 */
export async function* podsOnce(run: CleanRun, path: string, query?: Query): AsyncIterable<Pod> {
  const seen = new Set<string>();
  for await (const pod of run.list<Pod>(path, query)) {
    const { uid = '' } = pod.metadata ?? {};
    if (seen.has(uid)) continue;
    seen.add(uid);
    yield pod;
  }
}

interface PodWithStatus extends Pod {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** Whether a pod is ready and not being deleted. */
export function isReady({ metadata, status }: PodWithStatus): boolean {
  if (metadata?.deletionTimestamp !== undefined) return false;
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
}
