/** The current custom resources of a cluster, from watches. */
import type { KubeObject } from '../../kube/api/objects.ts';
import type { Reflector } from '../../kube/watch/reflector.ts';
import { Store } from '../../kube/watch/store.ts';
import { gauge, itemCounts, type Metrics } from '../../telemetry/metrics.ts';
import {
  byPrecedence,
  clusterConfigKind,
  clusterConfigName,
  podConfigKind,
  readClusterConfig,
  readPodConfig,
  type ClusterPlacement,
} from './placement.ts';
import { byAge, readRollout, rolloutKind, type RolloutScope } from './rollout.ts';

export type ObjectSource = Pick<Reflector<KubeObject>, 'values' | 'onEach'>;

/**
 * Memory for large objects. Anyone with the role `edit` may create any number, of half a megabyte each. Those
 * without room are ignored.
 */
export const largeConfigs = { maxBytes: 8 * 1024 * 1024 } as const;

export const customResources = gauge(
  'archwright_custom_resources',
  'Custom resources. Invalid ones are ignored.',
  { kind: [clusterConfigKind, podConfigKind, rolloutKind], state: ['used', 'invalid'] },
);

export type ResourceCollection = ReturnType<typeof collectResources>;

export interface ResourceSources {
  readonly clusterConfigs?: ObjectSource | undefined;
  readonly podConfigs?: ObjectSource | undefined;
  readonly rollouts?: ObjectSource | undefined;
  readonly metrics?: Metrics | undefined;
}

/** Follows the sources. An invalid object counts as absent; its status and a metric report it. */
export function collectResources({ clusterConfigs, podConfigs, rollouts, metrics }: ResourceSources) {
  const listeners: (() => void)[] = [];
  const changed = (): void => listeners.forEach((listener) => listener());
  const clusters = collected(clusterConfigs, (each) => readClusterConfig(each).value, changed);
  const pods = collected(podConfigs, (each) => readPodConfig(each).value, changed, byPrecedence);
  const rolling = collected(
    rollouts,
    (each): RolloutScope | undefined => readRollout(each).value,
    () => undefined,
    byAge,
    ({ newPods }) => newPods !== undefined,
  );
  if (metrics) {
    const show = itemCounts(metrics, customResources);
    const kinds = [
      { kind: clusterConfigKind, objects: clusters },
      { kind: podConfigKind, objects: pods },
      { kind: rolloutKind, objects: rolling },
    ];
    const labels = ({ kind, objects }: (typeof kinds)[number]): { kind: string; state: string }[] =>
      objects.values().map((value) => ({ kind, state: value === undefined ? 'invalid' : 'used' }));
    metrics.beforeScrape(() => show(kinds.flatMap(labels), (each) => [each]));
  }
  return {
    /** `undefined` if there is no valid one. */
    cluster: (): ClusterPlacement | undefined => clusters.get('', clusterConfigName),
    /** The valid ones of a namespace by precedence. */
    podsIn: (namespace: string) => pods.in(namespace),
    /** The rollouts of a namespace that affect new pods, the oldest first. */
    rolloutsIn: (namespace: string) => rolling.in(namespace),
    /** Called when an object changes that is not a rollout. */
    onChange: (listener: () => void): void => void listeners.push(listener),
  };
}

/**
 * Objects of one kind; `undefined`: an invalid one. Sorted at first use: a namespace can have thousands.
 * @param isUsed which valid ones of a namespace count. Default: all
 */
function collected<T>(
  source: ObjectSource | undefined,
  read: (object: KubeObject) => T | undefined,
  changed: () => void,
  order?: (a: T, b: T) => number,
  isUsed: (each: T) => boolean = () => true,
) {
  const all = new Store<{ readonly value: T | undefined }>();
  const sorted = new Map<string, readonly T[]>();
  /** @param object `undefined`: it is gone */
  function take(namespace: string, name: string, object: KubeObject | undefined): void {
    all.set(namespace, name, object && { value: read(object) });
    sorted.delete(namespace);
  }
  for (const object of source?.values() ?? [])
    take(object.metadata?.namespace ?? '', object.metadata?.name ?? '', object);
  source?.onEach(({ namespace, name, object }) => {
    take(namespace, name, object);
    changed();
  });
  return {
    get: (namespace: string, name: string) => all.get(namespace, name)?.value,
    in: (namespace: string): readonly T[] => {
      const known = sorted.get(namespace);
      if (known) return known;
      const present = [...all.values(namespace)];
      const found = present.flatMap(({ value }) => (value !== undefined && isUsed(value) ? [value] : []));
      found.sort(order);
      // Namespaces without objects take no room.
      if (present.length > 0) sorted.set(namespace, found);
      return found;
    },
    values: () => [...all.values()].map(({ value }) => value),
  };
}
