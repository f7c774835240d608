/**
 * The leader's caches: watches that all features share, trimmed to the fields in use. Pods are two watches, split by
 * `spec.nodeName` on the server, because almost all pods of a cluster run. Those are reduced to a few fields; of pods that
 * wait, only those with our gate or our `pending` are kept, with the fields that a decision needs.
 */
import type { Clock } from '../../async/clock.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { forOptionalKind } from '../../kube/watch/optional-kind.ts';
import { startReflector, type Reflector } from '../../kube/watch/reflector.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { trimNamespace, trimNode } from './nodes.ts';
import { trimRunningPod } from './running-pods.ts';
import { createSharing } from './sharing.ts';
import { mayBeWaiting, trimWaitingPod } from './waiting-pods.ts';
import type { CachedNamespace, CachedNode, RunningPod, WaitingPod } from './cached.ts';
import { cachedObjects, type WatchName } from './metrics.ts';
import { clusterConfigsPath, podConfigsPath } from '../../policy/resources/placement.ts';
import { paths } from '../../kube/api/paths.ts';

export interface Caches {
  readonly waitingPods: Reflector<WaitingPod>;
  readonly runningPods: Reflector<RunningPod>;
  readonly nodes: Reflector<CachedNode>;
  readonly namespaces: Reflector<CachedNamespace>;
  /** Custom resources, untrimmed; empty if their definitions are not installed. */
  readonly clusterConfigs: Reflector<KubeObject>;
  readonly podConfigs: Reflector<KubeObject>;
  /** Resolves when each cache has its first list. */
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

/** Starts all watches at once. Caches of custom resources that are not installed are empty, and ready. */
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
