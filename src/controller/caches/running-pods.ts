/**
 * Trims pods with a node. Measured with 10,000 pods of 500 workloads, three containers each, 6.6 KB of JSON:
 * 0.45 KB of heap for each pod (3.5 KB without sharing), 16 µs to trim one.
 */
import { pullSecretNames } from '../../credentials/sources/pull-secrets.ts';
import type { Container, KubeObject, OwnerReference, Pod, PodSpec } from '../../kube/api/objects.ts';
import { operatingSystemOf } from '../../placement/pod/operating-system.ts';
import type { NodeChoice, RunningContainer, RunningPod } from './cached.ts';
import { controllerOf } from '../scope/workload.ts';
import { isReady, keptAnnotations, timeOf, type WithConditions } from './kept-fields.ts';
import type { Share } from './sharing.ts';

/** Kept of a termination message: an exec format error is in its first line. */
const maxMessageBytes = 256;

interface ContainerState {
  readonly waiting?: { readonly reason?: string; readonly message?: string };
  readonly running?: object;
  readonly terminated?: { readonly reason?: string; readonly exitCode?: number; readonly message?: string };
}

interface ContainerStatus {
  readonly name: string;
  readonly image?: string;
  readonly imageID?: string;
  readonly ready?: boolean;
  readonly restartCount?: number;
  readonly state?: ContainerState;
  readonly lastState?: ContainerState;
}

interface PodWithStatus extends Pod {
  readonly status?: WithConditions & {
    readonly phase?: string;
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly ephemeralContainerStatuses?: readonly ContainerStatus[];
  };
}

/** @returns `undefined` for a pod without a node */
export function trimRunningPod(object: KubeObject, share: Share): RunningPod | undefined {
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
    deleting: metadata.deletionTimestamp !== undefined,
    createdAt: timeOf(metadata.creationTimestamp),
    labels: share(metadata.labels),
    annotations: share(keptAnnotations(metadata.annotations)),
    owner: share(owner && ownerOf(owner)),
    serviceAccountName: share(spec.serviceAccountName),
    pullSecrets: share(pullSecretNames(spec)),
    images: share(imagesIn(spec)),
    containers: share(
      [
        ...(status?.initContainerStatuses ?? []),
        ...(status?.containerStatuses ?? []),
        ...(status?.ephemeralContainerStatuses ?? []),
      ].map(containerOf),
    ),
    tolerations: share(spec.tolerations ?? []),
    nodeChoice: share(choiceOf(spec)),
  };
}

/** @returns `undefined` if any node will do */
function choiceOf({ nodeSelector = {}, affinity }: Partial<PodSpec>): NodeChoice | undefined {
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return terms === undefined && Object.keys(nodeSelector).length === 0 ? undefined : { nodeSelector, terms };
}

function ownerOf({ apiVersion, kind, name, uid }: OwnerReference): OwnerReference {
  return { apiVersion, kind, name, uid, controller: true };
}

function imagesIn(spec: Pod['spec']): RunningPod['images'] {
  const ofContainer = ({ name, image, imagePullPolicy }: Container): RunningPod['images'] =>
    image ? [{ image, pullPolicy: imagePullPolicy, usedBy: name }] : [];
  return [
    ...[...(spec.initContainers ?? []), ...(spec.containers ?? [])].flatMap(ofContainer),
    ...(spec.volumes ?? []).flatMap(({ name, image }) =>
      image?.reference ? [{ image: image.reference, pullPolicy: image.pullPolicy, usedBy: name }] : [],
    ),
  ];
}

/** `state` says why a container waits; `lastState` says how it ended before. */
function containerOf(status: ContainerStatus): RunningContainer {
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
