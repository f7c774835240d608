/** Rollouts by namespace: pods have many events, and a cluster can have thousands of rollouts. */
import type { KubeObject } from '../../kube/api/objects.ts';
import { follow, type ObjectSource } from '../../policy/resources/collection.ts';

export class RolloutsByNamespace {
  /** By name. */
  readonly #namespaces = new Map<string, Map<string, KubeObject>>();

  constructor(rollouts: ObjectSource) {
    follow(rollouts, (namespace, name, object) => {
      const siblings = this.#namespaces.get(namespace) ?? new Map<string, KubeObject>();
      if (object === undefined) siblings.delete(name);
      else siblings.set(name, object);
      if (siblings.size > 0) this.#namespaces.set(namespace, siblings);
      else this.#namespaces.delete(namespace);
    });
  }

  of(namespace: string): Iterable<KubeObject> {
    return this.#namespaces.get(namespace)?.values() ?? [];
  }
}
