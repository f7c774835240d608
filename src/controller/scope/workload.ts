/** Who owns a pod: its controller, and the controller's controller, which is what a person applied. */
import type { KubeClient } from '../../kube/api/client.ts';
import { isCode } from '../../kube/api/errors.ts';
import type { ObjectReference } from '../../kube/events/event.ts';
import type { KubeObject, OwnerReference } from '../../kube/api/objects.ts';
import { namespacedPath, type NamespacedPath } from '../../kube/api/paths.ts';
import type { Job } from '../misplaced/job.ts';

export interface Workload {
  /** The top owner that could be found. */
  readonly top: ObjectReference & { readonly uid: string };
  /** How many pods the pod's owner wants; `undefined`: its kind does not say. */
  readonly wanted: number | undefined;
  /** The pod's owner, if it is a Job. */
  readonly job?: Job;
}

interface Owner extends Job {
  readonly spec?: Job['spec'] & {
    readonly replicas?: number;
    readonly parallelism?: number;
    readonly completions?: number;
  };
  readonly status?: Job['status'] & { readonly succeeded?: number };
}

/** The kinds of Kubernetes itself that own pods and may be owned. */
const owners: Readonly<Record<string, NamespacedPath>> = {
  'apps/v1 ReplicaSet': namespacedPath('apps/v1', 'replicasets'),
  'apps/v1 StatefulSet': namespacedPath('apps/v1', 'statefulsets'),
  'batch/v1 Job': namespacedPath('batch/v1', 'jobs'),
  'v1 ReplicationController': namespacedPath('v1', 'replicationcontrollers'),
};

export function controllerOf({ metadata }: KubeObject): OwnerReference | undefined {
  return metadata?.ownerReferences?.find(({ controller }) => controller === true);
}

/** API path of an owner; `undefined` for other kinds. */
export function ownerPath(namespace: string, { apiVersion, kind, name }: OwnerReference): string | undefined {
  return owners[`${apiVersion} ${kind}`]?.(namespace, name);
}

/**
 * Reads the owner of a pod. An owner of another kind, or one that may not be read, is the workload itself.
 * @returns `undefined`: the owner is gone, and its pods will go too
 * @throws KubeError if there is no answer
 */
export async function workloadOf(
  namespace: string,
  owner: OwnerReference,
  { client, signal }: { readonly client: KubeClient; readonly signal: AbortSignal },
): Promise<Workload | undefined> {
  const itself: Workload = { top: referenceOf(namespace, owner), wanted: undefined };
  const path = ownerPath(namespace, owner);
  if (path === undefined) return itself;
  let found: Owner;
  try {
    found = await client.get<Owner>(path, { signal });
  } catch (error) {
    if (isCode(error, 'not-found')) return undefined;
    if (isCode(error, 'forbidden')) return itself;
    throw error;
  }
  if (found.metadata?.uid !== owner.uid) return undefined;
  return {
    top: referenceOf(namespace, controllerOf(found) ?? owner),
    wanted: wantedBy(found),
    ...(owner.kind === 'Job' && { job: found }),
  };
}

function wantedBy({ spec = {}, status }: Owner): number | undefined {
  const { replicas, parallelism, completions } = spec;
  if (parallelism === undefined) return replicas;
  // A Job does not replace pods that succeeded.
  const left = completions === undefined ? parallelism : completions - (status?.succeeded ?? 0);
  return Math.max(0, Math.min(parallelism, left));
}

/** A reference for events. */
export function referenceOf(
  namespace: string,
  { apiVersion, kind, name, uid }: OwnerReference,
): Workload['top'] {
  return { apiVersion, kind, namespace, name, uid };
}
