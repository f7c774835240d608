/** The workload of a pod: its owner, and the owner's owner where that is what a person knows. */
import type { KubeClient } from '../../kube/api/client.ts';
import { namespacedPath } from '../../kube/api/paths.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { ObjectReference } from '../../kube/events/events.ts';
import type { OwnerReference } from '../../kube/api/objects.ts';
import type { Job } from './job.ts';

export interface Workload {
  /** What a person applied, as far as it can be found out. */
  readonly top: ObjectReference & { readonly uid: string };
  /** How many pods the pod's owner wants; `undefined` where its kind does not say. */
  readonly wanted: number | undefined;
  /** The pod's owner, where it is a Job. */
  readonly job?: Job;
}

interface Owning extends Job {
  readonly spec?: Job['spec'] & {
    readonly replicas?: number;
    readonly parallelism?: number;
    readonly completions?: number;
  };
  readonly status?: Job['status'] & { readonly succeeded?: number };
}

/** The kinds of Kubernetes itself that own pods and may be owned: what is asked for by name. */
const resources: Readonly<Record<string, string>> = {
  'apps/v1 ReplicaSet': 'replicasets',
  'apps/v1 StatefulSet': 'statefulsets',
  'batch/v1 Job': 'jobs',
  'v1 ReplicationController': 'replicationcontrollers',
};

/**
 * Finds it by a GET of the owner. An owner of another kind, or one that may not be read, is the workload itself.
 * @returns `undefined` where the owner is gone: its pods go too
 * @throws KubeError where there is no answer
 */
export async function workloadOf(
  namespace: string,
  owner: OwnerReference,
  options: { readonly client: KubeClient; readonly signal: AbortSignal },
): Promise<Workload | undefined> {
  const itself = referenceOf(namespace, owner);
  const resource = resources[`${owner.apiVersion} ${owner.kind}`];
  if (resource === undefined) return { top: itself, wanted: undefined };
  const path = namespacedPath(owner.apiVersion, resource)(namespace, owner.name);
  let found: Owning;
  try {
    found = await options.client.get<Owning>(path, { signal: options.signal });
  } catch (error) {
    if (error instanceof KubeError && error.code === 'not-found') return undefined;
    if (error instanceof KubeError && error.code === 'forbidden') return { top: itself, wanted: undefined };
    throw error;
  }
  if (found.metadata?.uid !== owner.uid) return undefined;
  const parent = found.metadata.ownerReferences?.find(({ controller }) => controller === true);
  return {
    top: parent ? referenceOf(namespace, parent) : itself,
    wanted: wantedBy(found),
    ...(resource === 'jobs' && { job: found }),
  };
}

function wantedBy({ spec = {}, status }: Owning): number | undefined {
  const { replicas, parallelism, completions } = spec;
  if (parallelism === undefined) return replicas;
  // The pods of a Job that ended well are not made again.
  const left = completions === undefined ? parallelism : completions - (status?.succeeded ?? 0);
  return Math.max(0, Math.min(parallelism, left));
}

function referenceOf(namespace: string, { apiVersion, kind, name, uid }: OwnerReference): Workload['top'] {
  return { apiVersion, kind, namespace, name, uid };
}
