/** A pod's owners: its controller, and the controller's controller, which a person applied. */
import type { V1JobSpec, V1JobStatus, V1PodFailurePolicyRule } from '@kubernetes/client-node';
import type { KubeClient } from '../../kube/api/client.ts';
import { isCode } from '../../kube/api/errors.ts';
import type { Json, KubeObject, OwnerReference, Pod, PodTemplate } from '../../kube/api/objects.ts';
import { namespacedPath, paths, type NamespacedPath } from '../../kube/api/paths.ts';
import type { ObjectReference } from '../../kube/events/events.ts';

export interface Workload {
  /** The top owner that could be found. */
  readonly top: ObjectReference & { readonly uid: string };
  /** Desired pods of the pod's owner; `undefined`: not a field of its kind. */
  readonly wanted: number | undefined;
  readonly job?: Job;
}

export interface Job extends KubeObject {
  readonly spec?: Partial<Json<V1JobSpec>>;
  readonly status?: Json<V1JobStatus>;
}

interface Owner extends Job {
  readonly spec?: Job['spec'] & { readonly replicas?: number };
}

interface DaemonSet extends KubeObject {
  readonly spec?: { readonly template?: PodTemplate };
}

interface Reader {
  readonly client: KubeClient;
  readonly signal: AbortSignal;
}

/** The kinds of Kubernetes itself that own pods and may be owned. */
const owners: Readonly<Record<string, NamespacedPath>> = {
  'apps/v1 ReplicaSet': namespacedPath('apps/v1', 'replicasets'),
  'apps/v1 StatefulSet': namespacedPath('apps/v1', 'statefulsets'),
  'batch/v1 Job': namespacedPath('batch/v1', 'jobs'),
  'v1 ReplicationController': namespacedPath('v1', 'replicationcontrollers'),
};

/** DaemonSets that the webhook places. The kind is unknown in other API groups (OpenKruise). */
export const daemonSetApiVersion = 'apps/v1';

/**
 * Of an owner in keys and events. The API server refuses only empty fields (apimachinery
 * pkg/api/validation/objectmeta.go `validateOwnerReference`): a name may have 1.5 MiB. Real ones are short.
 */
const maxOwnerLength = 1024;

export function controllerOf({ metadata }: KubeObject): OwnerReference | undefined {
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  if (owner === undefined) return undefined;
  const { apiVersion, kind, name, uid } = owner;
  return apiVersion.length + kind.length + name.length + uid.length > maxOwnerLength ? undefined : owner;
}

/** API path of an owner, or of all of its kind, in a namespace or in all; `undefined` for other kinds. */
export function ownersPath(
  { apiVersion, kind }: OwnerReference,
  namespace?: string,
  name?: string,
): string | undefined {
  return owners[`${apiVersion} ${kind}`]?.(namespace, name);
}

export function referenceOf(namespace: string, owner: OwnerReference): Workload['top'] {
  const { apiVersion, kind, name, uid } = owner;
  return { apiVersion, kind, namespace, name, uid };
}

export function podReference({ namespace, name, uid }: Pick<ObjectReference, 'namespace' | 'name' | 'uid'>) {
  return { apiVersion: 'v1', kind: 'Pod', namespace, name, uid };
}

/**
 * Reads the owner of a pod. An owner of another kind, or one that may not be read, is the workload itself.
 * @returns `undefined`: the owner is gone, and its pods will go too
 * @throws KubeError if there is no answer
 */
export async function workloadOf(
  namespace: string,
  owner: OwnerReference,
  reader: Reader,
): Promise<Workload | undefined> {
  const path = ownersPath(owner, namespace, owner.name);
  const found = path === undefined ? 'unknown' : await readOwner<Owner>(path, owner, reader);
  if (found === 'gone') return undefined;
  if (found === 'unknown') return { top: referenceOf(namespace, owner), wanted: undefined };
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

interface OwnedPod {
  readonly owner: OwnerReference | undefined;
}

/** Whether a pod's owner makes one for each node. */
export function isDaemon<T extends OwnedPod>(pod: T): pod is T & { readonly owner: OwnerReference } {
  return pod.owner?.kind === 'DaemonSet';
}

/** Whether a DaemonSet made the pod from a template that the webhook places. */
export function isOfPlacedTemplate<T extends OwnedPod>(
  pod: T,
): pod is T & { readonly owner: OwnerReference } {
  return isDaemon(pod) && pod.owner.apiVersion === daemonSetApiVersion;
}

/**
 * The template of a DaemonSet's next pod, read when needed, which is seldom: with OnDelete or during a
 * rollout, a pod may have an older one.
 * @returns `gone`: no such DaemonSet; `unknown`: no right to read it, or another API group
 * @throws KubeError if there is no answer
 */
export async function daemonTemplateOf(
  { namespace, owner }: { readonly namespace: string; readonly owner: OwnerReference },
  reader: Reader,
): Promise<PodTemplate | 'gone' | 'unknown'> {
  if (owner.apiVersion !== daemonSetApiVersion) return 'unknown';
  const found = await readOwner<DaemonSet>(paths.daemonSets(namespace, owner.name), owner, reader);
  return typeof found === 'string' ? found : (found.spec?.template ?? 'unknown');
}

/** @returns `gone`: it does not exist any more; `unknown`: it may not be read */
async function readOwner<T extends KubeObject>(
  path: string,
  { uid }: OwnerReference,
  { client, signal }: Reader,
): Promise<T | 'gone' | 'unknown'> {
  try {
    const found = await client.get<T>(path, { signal });
    return found.metadata?.uid === uid ? found : 'gone';
  } catch (error) {
    if (isCode(error, 'not-found')) return 'gone';
    if (isCode(error, 'forbidden')) return 'unknown';
    throw error;
  }
}

/** The API server's default. */
const usualLimit = 6;

/** The annotation of pods of an indexed Job with a limit for each index: failures of the index before this pod. */
const indexFailures = 'batch.kubernetes.io/job-index-failure-count';

/**
 * How many more pods a Job may lose; infinity: evictions do not count. A Job counts a deleted pod as failed, and
 * fails at its limit (measured with 1.36: `backoffLimit: 0`). Kubernetes documentation, "Jobs": backoff failure
 * policy, backoff limit per index, pod failure policy.
 * @param pod to be evicted
 */
export function lossesLeft({ spec = {}, status = {} }: Job, { metadata }: Pod): number {
  const { backoffLimit = usualLimit, backoffLimitPerIndex, podFailurePolicy } = spec;
  const rule = podFailurePolicy?.rules?.find(isAboutEvictions)?.action;
  if (rule === 'Ignore') return Number.POSITIVE_INFINITY;
  if (rule === 'FailJob' || rule === 'FailIndex') return 0;
  const failed = (status.failed ?? 0) + (status.uncountedTerminatedPods?.failed?.length ?? 0);
  const ofIndex =
    backoffLimitPerIndex === undefined
      ? Number.POSITIVE_INFINITY
      : backoffLimitPerIndex - Number(metadata?.annotations?.[indexFailures] ?? 0);
  return Math.max(0, Math.min(backoffLimit - failed, ofIndex));
}

/** The Eviction API gives the pod this condition. */
function isAboutEvictions({ onPodConditions }: Json<V1PodFailurePolicyRule>): boolean {
  return (
    onPodConditions?.some(({ type, status = 'True' }) => type === 'DisruptionTarget' && status === 'True') ??
    false
  );
}
