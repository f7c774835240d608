/**
 * Keeps pods without a node that have our gate, that archwright left pending, or that a rollout placed.
 * Trimmed to what decisions and patches need: there may be ten thousand, each with its environment.
 */
import type { Container, KubeObject, Pod, PodSpec } from '../../kube/api/objects.ts';
import { keys } from '../../names/keys.ts';
import type { RolledOut } from '../../placement/decision.ts';
import { uncheckedRecord } from '../../placement/record/read.ts';
import { keptAnnotations, type Share } from './cached.ts';

export interface WaitingPod {
  /** The fields that decisions need, at their place in the pod. Shared and frozen. */
  readonly pod: Pod;
  /** There is no room for it (`kube/watch/store.ts`): only its identity and its gate are kept. */
  readonly isIncomplete?: true;
  /** The choice of a rollout. The pod has no gate any more, and waits for the scheduler. */
  readonly rollout?: RolledOut;
}

/** A pod without room: its identity, its gate and its age. */
export function incomplete({ pod: { metadata = {}, spec }, rollout }: WaitingPod): WaitingPod {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  const kept = defined({ name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp });
  const schedulingGates = carriesGate({ spec }) ? [{ name: keys.gate }] : [];
  const pod = { metadata: kept, spec: { schedulingGates, containers: [] } } as Pod;
  return { pod, isIncomplete: true, ...(rollout && { rollout }) };
}

/** @returns `undefined` if the pod is not kept */
export function trimWaitingPod(object: KubeObject, share: Share): WaitingPod | undefined {
  const { metadata = {}, spec } = object as Partial<Pod>;
  if (spec === undefined || spec.nodeName) return undefined;
  const isGated = carriesGate({ spec });
  const { rollout, outcome } = isGated ? {} : uncheckedRecord({ metadata });
  if (!isGated && !rollout && outcome !== 'pending') return undefined;
  const { name, generateName, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp } =
    metadata;
  const pod = {
    metadata: defined({
      name,
      generateName: share(generateName),
      namespace: share(namespace),
      uid,
      resourceVersion,
      creationTimestamp,
      deletionTimestamp,
      labels: share(metadata.labels),
      // Without annotations of ours it still matters whether there are any.
      annotations: share(metadata.annotations && (keptAnnotations(metadata.annotations) ?? {})),
      ownerReferences: share(metadata.ownerReferences),
    }),
    spec: share(trimSpec(spec)),
  };
  return { pod: pod as Pod, ...(rollout && { rollout }) };
}

export function carriesGate({ spec }: Pick<Pod, 'spec'>): boolean {
  return spec.schedulingGates?.some(({ name }) => name === keys.gate) ?? false;
}

function trimSpec(spec: PodSpec): PodSpec {
  const { serviceAccountName, os, nodeSelector, affinity, tolerations, schedulingGates, imagePullSecrets } =
    spec;
  const { initContainers, containers, volumes } = spec;
  return defined({
    serviceAccountName,
    os,
    nodeSelector,
    affinity,
    tolerations,
    schedulingGates,
    imagePullSecrets,
    initContainers: initContainers?.map(trimContainer),
    containers: containers?.map(trimContainer) ?? [],
    volumes: volumes?.flatMap(({ name, image, persistentVolumeClaim }) =>
      image || persistentVolumeClaim ? [defined({ name, image, persistentVolumeClaim })] : [],
    ),
  }) as PodSpec;
}

function trimContainer({ name, image, imagePullPolicy, restartPolicy }: Container): Container {
  return defined({ name, image, imagePullPolicy, restartPolicy }) as Container;
}

/** Removes undefined fields, which an object from the API server does not have. */
function defined<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}
