/** A cache of raw objects without a server, in place of `startReflector`. */
import type { Change } from '../../../src/kube/watch/reflector.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import type { ObjectSource } from '../../../src/policy/resources/collection.ts';

export interface TestSource extends ObjectSource {
  put(object: KubeObject): void;
  remove(name: string, namespace?: string): void;
}

export function createSource(...initial: KubeObject[]): TestSource {
  const objects = new Map<string, KubeObject>();
  const listeners: ((change: Change<KubeObject>) => void)[] = [];
  const keyOf = (namespace: string, name: string): string => `${namespace}/${name}`;
  function set(namespace: string, name: string, object: KubeObject | undefined): void {
    const previous = objects.get(keyOf(namespace, name));
    if (object) objects.set(keyOf(namespace, name), object);
    else objects.delete(keyOf(namespace, name));
    for (const listener of listeners) listener({ namespace, name, object, previous });
  }
  const source: TestSource = {
    values: () => objects.values(),
    onEach: (listener) => void listeners.push(listener),
    put: (object) => set(object.metadata?.namespace ?? '', object.metadata?.name ?? '', object),
    remove: (name, namespace = '') => set(namespace, name, undefined),
  };
  for (const object of initial) source.put(object);
  return source;
}
