/**
 * Which of the pods without a node are kept: those that wait behind our gate, and those that we made pend. Of these, what a
 * decision and its patch look at: ten thousand pods that wait are ten thousand objects with all their environment.
 */
import type { Container, KubeObject, Pod, PodSpec } from '../../kube/api/objects.ts';
import { keys } from '../../names/keys.ts';
import { recordedOutcome } from '../../placement/record/read.ts';
import type { WaitingPod } from './cached.ts';
import { keptAnnotations } from './annotations.ts';
import type { Share } from './sharing.ts';

/** @returns what is kept of the pod, or `undefined` where it does not concern us */
export function trimWaitingPod(object: KubeObject, share: Share): WaitingPod | undefined {
  const { metadata = {}, spec } = object as Partial<Pod>;
  if (spec === undefined || spec.nodeName) return undefined;
  if (!carriesGate({ spec }) && recordedOutcome({ metadata }) !== 'pending') return undefined;
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  const pod = {
    metadata: defined({
      name,
      namespace: share(namespace),
      uid,
      resourceVersion,
      creationTimestamp,
      deletionTimestamp,
      labels: share(metadata.labels),
      // Where there are none of ours, it still counts that there are some.
      annotations: share(metadata.annotations && (keptAnnotations(metadata.annotations) ?? {})),
      ownerReferences: share(metadata.ownerReferences),
    }),
    spec: share(trimSpec(spec)),
  };
  return { pod: pod as Pod };
}

/** Whether a pod with this JSON may be kept: it names our gate, or holds a record, a text of its own in JSON, that says `pending`. */
export function mayBeWaiting(text: string): boolean {
  return text.includes(keys.gate) || text.includes(String.raw`\"pending\"`);
}

/** Whether the scheduler leaves a pod alone because of us. */
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
    volumes: volumes?.flatMap(({ name, image }) => (image === undefined ? [] : [{ name, image }])),
  }) as PodSpec;
}

function trimContainer({ name, image, imagePullPolicy, restartPolicy }: Container): Container {
  return defined({ name, image, imagePullPolicy, restartPolicy }) as Container;
}

/** Without the fields that are not there, as an object that comes off the wire. */
function defined<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}
