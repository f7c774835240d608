/**
 * What the leader keeps in memory of the cluster: watches shared by all features, trimmed to the fields in use. Pods are two
 * watches, split by `spec.nodeName` on the server, because almost all pods of a cluster run: those that wait are kept whole
 * where they carry our gate, those that run are reduced to a few fields.
 */
import type { KubeObject, ObjectMeta, OwnerReference, Pod, Toleration } from '../kube/objects.ts';
import type { Reflector } from '../kube/reflector.ts';

/** A pod without a node. */
export interface WaitingPod {
  /** The pod as it is, without managed fields; only where it carries our gate or our decision `pending`. */
  readonly pod: Pod;
}

export interface RunningContainer {
  readonly name: string;
  readonly image: string;
  readonly imageID: string;
  readonly ready: boolean;
  readonly restartCount: number;
  /** `waiting.reason`, `terminated.reason` or `lastState.terminated.reason`, whichever is there first. */
  readonly reason: string | undefined;
  readonly exitCode: number | undefined;
  /** Termination message, first 256 bytes. */
  readonly message: string | undefined;
}

/** A pod with a node. */
export interface RunningPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly node: string;
  readonly os: string;
  readonly phase: string;
  readonly ready: boolean;
  readonly deleting: boolean;
  /** Server time, milliseconds. */
  readonly createdAt: number;
  readonly labels: ObjectMeta['labels'];
  /** Of the annotations, those with our prefix, and the one that marks mirror pods. */
  readonly annotations: ObjectMeta['annotations'];
  readonly owner: OwnerReference | undefined;
  readonly serviceAccountName: string | undefined;
  readonly pullSecrets: readonly string[];
  /** Image and pull policy of each container, init container and image volume, as the spec writes them. */
  readonly images: readonly {
    readonly image: string;
    readonly pullPolicy: string | undefined;
    readonly usedBy: string;
  }[];
  readonly containers: readonly RunningContainer[];
  readonly tolerations: readonly Toleration[];
}

export interface CachedNode {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** As the kubelet reports it, else the label. */
  readonly architecture: string | undefined;
  readonly os: string | undefined;
  readonly hostname: string | undefined;
  readonly taints: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
  readonly ready: boolean;
  readonly createdAt: number;
}

export interface CachedNamespace {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly deleting: boolean;
}

export interface Caches {
  readonly waitingPods: Reflector<WaitingPod>;
  readonly runningPods: Reflector<RunningPod>;
  readonly nodes: Reflector<CachedNode>;
  readonly namespaces: Reflector<CachedNamespace>;
  /** Custom resources, as they are; empty where their definitions are not installed. */
  readonly clusterConfigs: Reflector<KubeObject>;
  readonly podConfigs: Reflector<KubeObject>;
  /** Resolves when each has its first list. */
  ready(signal: AbortSignal): Promise<void>;
  stop(): void;
}
