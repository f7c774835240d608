/** What the leader keeps of the cluster's objects. */
import type {
  NodeSelectorTerm,
  ObjectMeta,
  OwnerReference,
  Pod,
  Taint,
  Toleration,
} from '../../kube/api/objects.ts';

/** A pod without a node, with our gate or our decision `pending`. */
export interface WaitingPod {
  /** The fields that decisions need, at their place in the pod. Shared and frozen. */
  readonly pod: Pod;
}

export interface RunningContainer {
  readonly name: string;
  readonly image: string;
  readonly imageID: string;
  readonly ready: boolean;
  readonly running: boolean;
  readonly restartCount: number;
  /** `waiting.reason`, `terminated.reason` or `lastState.terminated.reason`, whichever is there first. */
  readonly reason: string | undefined;
  readonly exitCode: number | undefined;
  /** Termination message, first 256 bytes. */
  readonly message: string | undefined;
}

/** How a pod chooses among nodes. */
export interface NodeChoice {
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Terms of its required affinity, one of which a node has to match; `undefined`: it has none. */
  readonly terms: readonly NodeSelectorTerm[] | undefined;
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
  /** Annotations with our prefix, and the one that marks mirror pods. */
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
  readonly nodeChoice: NodeChoice | undefined;
}

export interface CachedNode {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** From the kubelet's report, else from the label. */
  readonly architecture: string | undefined;
  readonly os: string | undefined;
  readonly hostname: string | undefined;
  readonly taints: readonly Taint[];
  /** Key of the taint that archwright set, from its annotation. */
  readonly ownTaintKey: string | undefined;
  readonly ready: boolean;
  readonly createdAt: number;
}

export interface CachedNamespace {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly deleting: boolean;
}
