/**
 * What the leader keeps in memory of the cluster: watches shared by all features, trimmed to the fields in use. Pods are two
 * watches, split by `spec.nodeName` on the server, because almost all pods of a cluster run: of those that wait,
 * what a decision looks at is kept where they carry our gate; those that run are reduced to a few fields.
 */
import type { Clock } from '../../async/clock.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import type {
  KubeObject,
  ObjectMeta,
  OwnerReference,
  Pod,
  Taint,
  Toleration,
} from '../../kube/api/objects.ts';
import { forOptionalKind } from '../../kube/watch/optional-kind.ts';
import { startReflector, type Reflector } from '../../kube/watch/reflector.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { trimNode } from './nodes.ts';
import { trimRunningPod } from './running-pods.ts';
import { createSharing } from './sharing.ts';
import { mayBeWaiting, trimWaitingPod } from './waiting-pods.ts';
import type { NodeChoice } from '../scope/chosen-nodes.ts';
import { cachedObjects, type WatchName } from '../metrics.ts';
import { clusterConfigsPath, podConfigsPath } from '../../policy/resources/placement.ts';
import { paths } from '../../kube/api/paths.ts';

/** A pod without a node. */
export interface WaitingPod {
  /**
   * What decisions look at, at its place in the pod; only where it carries our gate or our decision `pending`. Shared and
   * frozen.
   */
  readonly pod: Pod;
}

export interface RunningContainer {
  readonly name: string;
  readonly image: string;
  readonly imageID: string;
  readonly ready: boolean;
  /** Whether it runs now, whatever became of it before. */
  readonly running: boolean;
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
  readonly nodeChoice: NodeChoice | undefined;
}

export interface CachedNode {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** As the kubelet reports it, else the label. */
  readonly architecture: string | undefined;
  readonly os: string | undefined;
  readonly hostname: string | undefined;
  readonly taints: readonly Taint[];
  /** Key of the taint that we gave it, as its annotation says. */
  readonly ownTaintKey: string | undefined;
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

export interface CachesOptions {
  /** Only read from. */
  readonly client: KubeClient;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

/** Starts all watches at once. Where the custom resources are not installed, their caches are empty, and ready. */
export function startCaches(options: CachesOptions): Caches {
  const { client, log, metrics, clock } = options;
  const share = createSharing();
  const optional = forOptionalKind({ client, clock, log });
  const common = { client, log, metrics, clock };
  const custom = (path: string) => {
    const isAbsent = (): boolean => optional.isAbsent(path);
    return { ...common, client: optional, path, isAbsent, trim: (object: KubeObject) => object };
  };
  const reflectors = {
    waitingPods: startReflector({
      ...common,
      path: paths.pods(),
      fieldSelector: 'spec.nodeName=',
      mayKeep: mayBeWaiting,
      trim: (object) => trimWaitingPod(object, share),
    }),
    runningPods: startReflector({
      ...common,
      path: paths.pods(),
      fieldSelector: 'spec.nodeName!=',
      trim: (object) => trimRunningPod(object, share),
    }),
    nodes: startReflector({ ...common, path: paths.nodes(), trim: (object) => trimNode(object, share) }),
    namespaces: startReflector({ ...common, path: paths.namespaces(), trim: trimNamespace }),
    clusterConfigs: startReflector(custom(clusterConfigsPath())),
    podConfigs: startReflector(custom(podConfigsPath())),
  };
  const all = Object.entries(reflectors) as [WatchName, Reflector<unknown>][];
  const levels = all.map(([watch, reflector]) => ({
    reflector,
    objects: metrics.gauge(cachedObjects, { watch }),
  }));
  const stopShowing = metrics.beforeScrape(() => {
    for (const { reflector, objects } of levels) objects.set(reflector.size);
  });

  return {
    ...reflectors,
    ready: async (signal) => {
      await Promise.all(all.map(([, reflector]) => reflector.ready(signal)));
    },
    stop: () => {
      for (const [, reflector] of all) reflector.stop();
      stopShowing();
      for (const { objects } of levels) objects.set(0);
    },
  };
}

/** What is kept of a namespace. */
export function trimNamespace({ metadata = {} }: KubeObject): CachedNamespace {
  const { name = '', labels = {}, deletionTimestamp } = metadata;
  return { name, labels, deleting: deletionTimestamp !== undefined };
}
