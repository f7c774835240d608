/**
 * The leader's caches: watches that all features share, trimmed to the fields in use. Pods have two watches,
 * split by `spec.nodeName` on the server, because almost all pods run. Running pods keep a few fields.
 * Waiting pods are kept only with our gate, our `pending` or the choice of a rollout, and with the fields that
 * a decision needs.
 */
import type { Clock } from '../../async/clock.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import { startReflector, type Reflector } from '../../kube/watch/reflector.ts';
import { clusterConfigsPath, podConfigsPath } from '../../policy/resources/placement.ts';
import { rolloutsPath } from '../../policy/resources/rollout.ts';
import { largeConfigs } from '../../policy/resources/collection.ts';
import type { Log } from '../../telemetry/log.ts';
import { gauge, type Metrics } from '../../telemetry/metrics.ts';
import {
  createSharing,
  trimConfig,
  trimNode,
  trimRunningPod,
  type CachedNode,
  type RunningPod,
} from './cached.ts';
import { incomplete, trimWaitingPod, type WaitingPod } from './waiting-pods.ts';

export type Caches = ReturnType<typeof startCaches>;

export const watchNames = [
  'waitingPods',
  'runningPods',
  'nodes',
  'namespaces',
  'clusterConfigs',
  'podConfigs',
  'rollouts',
] as const;

const limitedWatches = ['waitingPods', 'runningPods', 'podConfigs', 'rollouts'] as const;

export const cachedObjects = gauge(
  'archwright_controller_cached_objects',
  'Objects in the leader’s caches.',
  { watch: watchNames },
);

export const largeObjects = gauge(
  'archwright_controller_large_objects',
  'Objects of namespaces with too many large objects: waiting pods are read for each decision, others are ignored.',
  { watch: limitedWatches },
);

/** Memory for large objects of a watch. A list holds old and new ones; the chart's limit leaves 256 MiB of heap. */
const largeBytes = { waitingPods: 16 * 1024 * 1024, runningPods: 32 * 1024 * 1024 };

export interface CachesOptions {
  /** Only read from. */
  readonly client: KubeClient;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

/** Starts all watches at once. Caches of custom resources that are not installed are empty, and ready. */
export function startCaches(common: CachesOptions) {
  const { metrics } = common;
  const share = createSharing();
  const custom = (path: string): Reflector<KubeObject> =>
    startReflector({ ...common, path, isOptional: true, trim: trimConfig, large: largeConfigs });
  const reflectors = {
    waitingPods: startReflector<WaitingPod>({
      ...common,
      path: paths.pods(),
      fieldSelector: 'spec.nodeName=',
      trim: (object) => trimWaitingPod(object, share),
      large: { maxBytes: largeBytes.waitingPods, instead: incomplete },
    }),
    runningPods: startReflector<RunningPod>({
      ...common,
      path: paths.pods(),
      fieldSelector: 'spec.nodeName!=',
      trim: (object) => trimRunningPod(object, share),
      large: { maxBytes: largeBytes.runningPods },
    }),
    nodes: startReflector<CachedNode>({
      ...common,
      path: paths.nodes(),
      trim: (object) => trimNode(object, share),
    }),
    /** Their labels. */
    namespaces: startReflector<Readonly<Record<string, string>>>({
      ...common,
      path: paths.namespaces(),
      trim: ({ metadata }) => metadata?.labels ?? {},
    }),
    clusterConfigs: custom(clusterConfigsPath()),
    podConfigs: custom(podConfigsPath()),
    rollouts: custom(rolloutsPath()),
  };
  const all = watchNames.map((watch) => reflectors[watch]);
  const gauges = watchNames.map((watch) => metrics.gauge(cachedObjects, { watch }));
  const large = limitedWatches.map((watch) => metrics.gauge(largeObjects, { watch }));
  const stopShowing = metrics.beforeScrape(() => {
    for (const [index, { size }] of all.entries()) gauges[index]?.set(size);
    for (const [index, watch] of limitedWatches.entries()) large[index]?.set(reflectors[watch].refused);
  });

  return {
    ...reflectors,
    ready: async (signal: AbortSignal): Promise<void> => {
      await Promise.all(all.map((reflector) => reflector.ready(signal)));
    },
    stop: (): void => {
      for (const reflector of all) reflector.stop();
      stopShowing();
      for (const objects of [...gauges, ...large]) objects.set(0);
    },
  };
}
