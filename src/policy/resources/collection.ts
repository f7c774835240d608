/** The current custom resources of a cluster, from watches. */
import type { KubeObject } from '../../kube/api/objects.ts';
import type { Reflector } from '../../kube/watch/reflector.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { customResources } from '../metrics.ts';
import {
  byPrecedence,
  clusterConfigKind,
  clusterConfigName,
  podConfigKind,
  type ClusterPlacement,
  type PodPlacement,
} from './placement.ts';
import { readClusterConfig, readPodConfig } from './read.ts';
import { byAge, readRollout, rolloutKind, type RolloutScope } from './rollout.ts';

export type ObjectSource = Pick<Reflector<KubeObject>, 'values' | 'onEach'>;

/** Memory for large objects: anyone with the role `edit` may create any number, of half a megabyte each. Ones without room are ignored. */
export const largeConfigs = { maxBytes: 8 * 1024 * 1024 } as const;

export type ResourceCollection = ReturnType<typeof collectResources>;

export interface ResourceSources {
  readonly clusterConfigs?: ObjectSource | undefined;
  readonly podConfigs?: ObjectSource | undefined;
  readonly rollouts?: ObjectSource | undefined;
  readonly metrics?: Metrics | undefined;
}

/** Follows the sources. An invalid object counts as absent; its status and a metric report it. */
export function collectResources({ clusterConfigs, podConfigs, rollouts, metrics }: ResourceSources) {
  const listeners: ((namespace: string | undefined) => void)[] = [];
  const clusters = new Map<string, ClusterPlacement | undefined>();
  const pods = new Map<string, Map<string, PodPlacement | undefined>>();
  const sorted = new Map<string, readonly PodPlacement[] | undefined>();

  follow(clusterConfigs, (_namespace, name, object) => {
    put(clusters, name, object, (one) => readClusterConfig(one).placement);
    for (const listener of listeners) listener(undefined);
  });
  follow(podConfigs, (namespace, name, object) => {
    const siblings = pods.get(namespace) ?? new Map<string, PodPlacement | undefined>();
    put(siblings, name, object, (one) => readPodConfig(one).placement);
    if (siblings.size > 0) pods.set(namespace, siblings);
    else pods.delete(namespace);
    sorted.delete(namespace);
    for (const listener of listeners) listener(namespace);
  });

  const rolling = new Map<string, Map<string, RolloutScope | undefined>>();
  const rollingByAge = new Map<string, readonly RolloutScope[]>();
  follow(rollouts, (namespace, name, object) => {
    const siblings = rolling.get(namespace) ?? new Map<string, RolloutScope | undefined>();
    put(siblings, name, object, (one) => readRollout(one).rollout);
    if (siblings.size > 0) rolling.set(namespace, siblings);
    else rolling.delete(namespace);
    const usable = [...siblings.values()].filter((each) => each?.newPods !== undefined);
    if (usable.length === 0) rollingByAge.delete(namespace);
    else rollingByAge.set(namespace, usable.filter((each) => each !== undefined).sort(byAge));
  });

  function sort(namespace: string): readonly PodPlacement[] | undefined {
    const usable = [...(pods.get(namespace)?.values() ?? [])].filter((each) => each !== undefined);
    const found = usable.length === 0 ? undefined : usable.sort(byPrecedence);
    sorted.set(namespace, found);
    return found;
  }

  if (metrics) {
    countBeforeScrape(metrics, clusterConfigKind, () => clusters.values());
    countBeforeScrape(metrics, podConfigKind, () => [...pods.values()].flatMap((each) => [...each.values()]));
    countBeforeScrape(metrics, rolloutKind, () =>
      [...rolling.values()].flatMap((each) => [...each.values()]),
    );
  }

  return {
    /** `undefined` if there is no valid one. */
    cluster: (): ClusterPlacement | undefined => clusters.get(clusterConfigName),
    /** The valid ones of a namespace by precedence. The usual cluster has none, and nothing is remembered for it. */
    podsIn: (namespace: string) =>
      pods.has(namespace) ? (sorted.get(namespace) ?? sort(namespace)) : undefined,
    /** The rollouts of a namespace that affect new pods, the oldest first; `undefined`: none. */
    rolloutsIn: (namespace: string): readonly RolloutScope[] | undefined => rollingByAge.get(namespace),
    /** Called when the cluster's object (`undefined`) or one of a namespace changes. */
    onChange: (listener: (namespace: string | undefined) => void): void => void listeners.push(listener),
  };
}

/** Takes each object, and each that changes. `undefined`: it is gone. */
export function follow(
  source: ObjectSource | undefined,
  take: (namespace: string, name: string, object: KubeObject | undefined) => void,
): void {
  if (source === undefined) return;
  for (const object of source.values()) {
    take(object.metadata?.namespace ?? '', object.metadata?.name ?? '', object);
  }
  source.onEach(({ namespace, name, object }) => take(namespace, name, object));
}

function put<T>(
  placements: Map<string, T | undefined>,
  name: string,
  object: KubeObject | undefined,
  read: (object: KubeObject) => T | undefined,
): void {
  if (object === undefined) placements.delete(name);
  else placements.set(name, read(object));
}

function countBeforeScrape(metrics: Metrics, kind: string, placements: () => Iterable<unknown>): void {
  const used = metrics.gauge(customResources, { kind, state: 'used' });
  const invalid = metrics.gauge(customResources, { kind, state: 'invalid' });
  metrics.beforeScrape(() => {
    const all = [...placements()];
    const usable = all.filter((each) => each !== undefined).length;
    used.set(usable);
    invalid.set(all.length - usable);
  });
}
