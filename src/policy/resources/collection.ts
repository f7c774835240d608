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
  const clusters = new Collected(clusterConfigs, (each) => readClusterConfig(each).value, changed);
  const pods = new Collected(podConfigs, (each) => readPodConfig(each).value, changed, byPrecedence);
  const rolling = new Collected(
    rollouts,
    (each): RolloutScope | undefined => readRollout(each).value,
    () => undefined,
    byAge,
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
    rolloutsIn: (namespace: string) => rolling.in(namespace, ({ newPods }) => newPods !== undefined),
    /** Called when an object changes that is not a rollout. */
    onChange: (listener: () => void): void => void listeners.push(listener),
  };
}

/** Objects of one kind; `undefined`: an invalid one. Sorted at first use: a namespace can have thousands. */
class Collected<T> {
  readonly #read: (object: KubeObject) => T | undefined;
  readonly #order: ((a: T, b: T) => number) | undefined;
  readonly #all = new Store<{ readonly value: T | undefined }>();
  readonly #sorted = new Map<string, readonly T[]>();

  constructor(
    source: ObjectSource | undefined,
    read: (object: KubeObject) => T | undefined,
    changed: () => void,
    order?: (a: T, b: T) => number,
  ) {
    this.#read = read;
    this.#order = order;
    for (const object of source?.values() ?? [])
      this.#take(object.metadata?.namespace ?? '', object.metadata?.name ?? '', object);
    source?.onEach(({ namespace, name, object }) => {
      this.#take(namespace, name, object);
      changed();
    });
  }

  /** @param object `undefined`: it is gone */
  #take(namespace: string, name: string, object: KubeObject | undefined): void {
    this.#all.set(namespace, name, object && { value: this.#read(object) });
    this.#sorted.delete(namespace);
  }

  get(namespace: string, name: string): T | undefined {
    return this.#all.get(namespace, name)?.value;
  }

  /** @param isUsed always the same */
  in(namespace: string, isUsed: (each: T) => boolean = () => true): readonly T[] {
    const known = this.#sorted.get(namespace);
    if (known) return known;
    const all = [...this.#all.values(namespace)];
    const found = all.flatMap(({ value }) => (value !== undefined && isUsed(value) ? [value] : []));
    found.sort(this.#order);
    // Namespaces without objects take no room.
    if (all.length > 0) this.#sorted.set(namespace, found);
    return found;
  }

  values(): readonly (T | undefined)[] {
    return [...this.#all.values()].map(({ value }) => value);
  }
}
