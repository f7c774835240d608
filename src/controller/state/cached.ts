/** Cached fields of nodes, and of pods with a node. */
import { architectureOf, classify } from '../../nodes/classify.ts';
import { pooledNode } from '../../cluster/nodes.ts';
import { pullSecretNames } from '../../credentials/sources/pull-secrets.ts';
import {
  type ContainerStatus,
  type KubeObject,
  type Node,
  type ObjectMeta,
  type OwnerReference,
  type PodSpec,
  type PodWithStatus,
  type Taint,
  type WithConditions,
  isReady,
  timeOf,
} from '../../kube/api/objects.ts';
import { operatingSystemOf, staysTogether } from '../../placement/pod/terms.ts';
import { controllerOf } from '../pods/workload.ts';

export type CachedNode = Readonly<ReturnType<typeof trimNode>>;
export type RunningPod = Readonly<NonNullable<ReturnType<typeof trimRunningPod>>>;
export type RunningContainer = Readonly<ReturnType<typeof containerOf>>;
/** How a pod chooses among nodes: one of the terms of its required affinity has to match. */
export type NodeChoice = NonNullable<ReturnType<typeof choiceOf>>;

/** Node annotation: the key of our taint. */
export const taintAnnotation = 'arch.example/taint';

/** Ours, the kubelet's mark of a mirror pod, and the deletion cost. Others hold whole manifests. */
const kept =
  /^arch\.example\/|^kubernetes\.io\/config\.mirror$|^controller\.kubernetes\.io\/pod-deletion-cost$/u;

/** A longer record counts as absent. */
const maxAnnotationLength = 32_768;

/** The annotations that decisions look at; `undefined` if there are none. */
export function keptAnnotations(annotations: ObjectMeta['annotations']): ObjectMeta['annotations'] {
  const entries = Object.entries(annotations ?? {}).filter(
    ([key, value]) => kept.test(key) && value.length <= maxAnnotationLength,
  );
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function changeOf(status: WithConditions | undefined, condition: string): number {
  return timeOf(status?.conditions?.find(({ type }) => type === condition)?.lastTransitionTime);
}

/** Nodes of clouds have up to 60 labels; a compromised kubelet could set thousands. */
const maxLabels = 256;

export function trimNode(object: KubeObject, share: Share) {
  const node = object as Node & { readonly status?: WithConditions };
  const { metadata = {}, spec, status } = node;
  const { labels = {} } = metadata;
  return {
    name: share(metadata.name ?? ''),
    resourceVersion: metadata.resourceVersion ?? '',
    architecture: share(architectureOf(node)),
    classified: classify(node),
    os: share(status?.nodeInfo?.operatingSystem || labels['kubernetes.io/os']),
    ...pooledNode(labels, share),
    taints: share<readonly Taint[]>(
      (spec?.taints ?? []).map(({ key, value, effect }) =>
        value === undefined ? { key, effect } : { key, value, effect },
      ),
    ),
    ownTaintKey: share(metadata.annotations?.[taintAnnotation]),
    ready: isReady(status),
    readyChangedAt: changeOf(status, 'Ready'),
    unschedulable: spec?.unschedulable ?? false,
    deleting: metadata.deletionTimestamp !== undefined,
    labels: Object.fromEntries(
      Object.entries(labels)
        .slice(0, maxLabels)
        .map(([key, value]) => [key, share(value)]),
    ),
    createdAt: timeOf(metadata.creationTimestamp),
  };
}

/** A custom resource. */
export function trimConfig(object: KubeObject & { readonly spec?: unknown; readonly status?: unknown }) {
  const { name, namespace, uid, generation, resourceVersion, ...times } = object.metadata ?? {};
  const { creationTimestamp, deletionTimestamp } = times;
  return {
    metadata: { name, namespace, uid, generation, resourceVersion, creationTimestamp, deletionTimestamp },
    spec: object.spec,
    status: object.status,
  } as KubeObject;
}

/** Kept of a termination message: an exec format error is in its first line. */
const maxMessageBytes = 256;

/** @returns `undefined` for a pod without a node */
export function trimRunningPod(object: KubeObject, share: Share) {
  const { metadata = {}, spec, status } = object as PodWithStatus;
  if (!spec?.nodeName) return undefined;
  const owner = controllerOf(object);
  return {
    namespace: share(metadata.namespace ?? ''),
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    node: share(spec.nodeName),
    os: share(operatingSystemOf(spec)),
    phase: share(status?.phase ?? 'Unknown'),
    ready: isReady(status),
    readyChangedAt: changeOf(status, 'Ready'),
    scheduledAt: changeOf(status, 'PodScheduled'),
    deleting: metadata.deletionTimestamp !== undefined,
    createdAt: timeOf(metadata.creationTimestamp),
    labels: share(metadata.labels),
    annotations: share(keptAnnotations(metadata.annotations)),
    owner: share(owner && ownerOf(owner)),
    serviceAccountName: share(spec.serviceAccountName),
    pullSecrets: share(pullSecretNames(spec)),
    images: share(imagesIn(spec)),
    claims: share(claimsOf(spec)),
    containers: share(
      [
        ...(status?.initContainerStatuses ?? []),
        ...(status?.containerStatuses ?? []),
        ...(status?.ephemeralContainerStatuses ?? []),
      ].map(containerOf),
    ),
    tolerations: share(spec.tolerations ?? []),
    nodeChoice: share(choiceOf(spec)),
    staysTogether: staysTogether(spec),
  };
}

export function hasEnded({ phase }: Pick<RunningPod, 'phase'>): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}

/** @returns `undefined` if any node will do */
function choiceOf({ nodeSelector = {}, affinity }: Partial<PodSpec>) {
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return terms === undefined && Object.keys(nodeSelector).length === 0 ? undefined : { nodeSelector, terms };
}

function ownerOf({ apiVersion, kind, name, uid }: OwnerReference): OwnerReference {
  return { apiVersion, kind, name, uid, controller: true };
}

export function claimsOf({ volumes = [] }: PodSpec): readonly string[] {
  return volumes.flatMap(({ persistentVolumeClaim: claim }) => claim?.claimName ?? []);
}

/** Image and pull policy of each container, init container and image volume, as the spec writes them. */
function imagesIn({ initContainers = [], containers, volumes = [] }: PodSpec) {
  const uses = [
    ...[...initContainers, ...(containers ?? [])].map(({ name, image, imagePullPolicy: pullPolicy }) => {
      return { image, pullPolicy, usedBy: name };
    }),
    ...volumes.map(({ name, image }) => {
      return { image: image?.reference, pullPolicy: image?.pullPolicy, usedBy: name };
    }),
  ];
  return uses.flatMap(({ image, ...rest }) => (image ? [{ image, ...rest }] : []));
}

/** `state` says why a container waits; `lastState` says how it ended before. */
function containerOf(status: ContainerStatus) {
  const { state, lastState } = status;
  const ended = state?.terminated ?? lastState?.terminated;
  return {
    name: status.name,
    image: status.image ?? '',
    imageID: status.imageID ?? '',
    ready: status.ready ?? false,
    running: state?.running !== undefined,
    restartCount: status.restartCount ?? 0,
    reason: state?.waiting?.reason ?? ended?.reason,
    exitCode: ended?.exitCode,
    message: firstBytes(ended?.message),
  };
}

/** Cut at a whole character; a termination message has up to 4 KiB. */
function firstBytes(text: string | undefined): string | undefined {
  if (text === undefined || text === '' || Buffer.byteLength(text) <= maxMessageBytes)
    return text || undefined;
  const cut = Buffer.from(text.slice(0, maxMessageBytes)).subarray(0, maxMessageBytes);
  return new TextDecoder().decode(cut, { stream: true });
}

/** Returns a value equal to the given one: the same object for equal values, as long as it is remembered. */
export type Share = <T>(value: T) => T;

/** Enough for the workloads, nodes and images of a large cluster; beyond it sharing begins anew. */
const maxValues = 20_000;
/** All keys together. The values of a large cluster have a few hundred characters each. */
const maxCharacters = 8 * 1024 * 1024;
/** A longer value would stay in memory after its pods. */
const maxLength = 4096;

/**
 * One copy of equal values of many objects. Pods of a workload have the same labels, tolerations and images, each
 * parsed from its own bytes: without sharing, these would be most of the memory. Shared values must never
 * change, so they are frozen.
 */
export function createSharing(): Share {
  const known = new Map<string, unknown>();
  let characters = 0;
  return <T>(value: T): T => {
    if (value === undefined || value === null) return value;
    const key = typeof value === 'string' ? `"${value}` : JSON.stringify(value);
    const found = known.get(key);
    if (found !== undefined) return found as T;
    if (key.length > maxLength) return value;
    if (known.size >= maxValues || characters + key.length > maxCharacters) {
      known.clear();
      characters = 0;
    }
    characters += key.length;
    known.set(key, frozen(value));
    return value;
  };
}

function frozen(value: unknown): unknown {
  if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) frozen(part);
    Object.freeze(value);
  }
  return value;
}
