/** Pods of the model: what a kubelet does with them, how the API server shows them, and the caches with them. */
import type { KubeObject } from '../../../../src/kube/api/objects.ts';
import type { Change, Reflector } from '../../../../src/kube/watch/reflector.ts';
import type { Random } from '../../../e2e/random.ts';
import { controllerRef } from '../../objects.ts';

const second = 1000;
export const healths = ['fine', 'fine', 'unready', 'crash', 'slow', 'flaky'] as const;
export const stepLists = [['10%', '50%', '100%'], ['50%'], [2, '100%'], ['100%'], ['25%', '75%']] as const;
export type Health = (typeof healths)[number];

export interface ModelPod {
  readonly name: string;
  readonly workload: string;
  readonly createdAt: number;
  readonly side: 'Target' | 'Other' | undefined;
  readonly health: Readonly<Record<'amd' | 'arm', Health>>;
  node?: 'amd' | 'arm';
  scheduledAt: number;
  ready: boolean;
  changedAt: number;
  restarts: number;
  deletedAt?: number;
  annotations: Record<string, string>;
}

/** What a kubelet does in this time. @returns whether the pod changed */
export function run(pod: ModelPod, now: number, ms: number, random: Random): boolean {
  if (pod.node === undefined) return false;
  const health = pod.health[pod.node];
  const age = now - pod.scheduledAt;
  const restarts = health === 'crash' && age > 20 * second ? Math.ceil(ms / (60 * second)) : 0;
  pod.restarts += restarts;
  const isReady =
    health === 'flaky'
      ? random.chance(0.5)
      : (health === 'fine' && age >= 5 * second) || (health === 'slow' && age >= 600 * second);
  if (isReady === pod.ready) return restarts > 0;
  pod.ready = isReady;
  pod.changedAt = now;
  return true;
}

/** After a rollback only moved pods are evicted, and never more ready pods than a quarter may be missing. */
export function checkEviction(pod: ModelPod, pods: readonly ModelPod[], isEnded: boolean): void {
  // A pod that waits without a choice does not count yet.
  const all = pods.filter(({ workload, node, side }) => workload === pod.workload && (node ?? side));
  const missing = all.filter(({ ready, deletedAt }) => !ready || deletedAt !== undefined).length;
  if (pod.deletedAt !== undefined || (isEnded && pod.side !== 'Target'))
    throw new Error(`${pod.name} is evicted, which did not move`);
  if (pod.ready && missing >= Math.max(1, Math.floor(all.length / 4)))
    throw new Error(`${pod.name} is evicted, while ${missing} of ${all.length} pods are missing`);
}

/** As the API server has it. */
export function objectOf(pod: ModelPod): KubeObject & { readonly spec: object; readonly status: object } {
  const text = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;
  const { name, side, node, ready, deletedAt } = pod;
  const record = {
    v: 1,
    outcome: 'placed',
    architectures: [],
    imagesKey: '',
    added: {},
    rollout: ['web', side],
  };
  const decision = side && { 'arch.example/decision': JSON.stringify(record) };
  return {
    metadata: {
      namespace: 'shop',
      name,
      uid: name,
      creationTimestamp: text(pod.createdAt),
      ...(deletedAt !== undefined && { deletionTimestamp: text(deletedAt) }),
      labels: { 'pod-template-hash': '1' },
      annotations: { ...decision, ...pod.annotations },
      ownerReferences: [controllerRef('ReplicaSet', `${pod.workload}-1`)],
    },
    spec: { containers: [{ name: 'c', image: 'app' }], ...(node && { nodeName: `${node}-1` }) },
    status: {
      phase: node ? 'Running' : 'Pending',
      conditions: [
        { type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: text(pod.changedAt) },
        {
          type: 'PodScheduled',
          status: node ? 'True' : 'False',
          lastTransitionTime: text(pod.scheduledAt),
        },
      ],
      containerStatuses: [{ name: 'c', image: 'app', ready, restartCount: pod.restarts }],
    },
  };
}

/** A reflector that the model fills. */
export class ModelCache<T> implements Reflector<T> {
  readonly #objects = new Map<string, T>();
  readonly #listeners: ((change: Change<T>) => void)[] = [];
  readonly #namespace: string;
  readonly refused = 0;

  constructor(namespace: string) {
    this.#namespace = namespace;
  }
  get size(): number {
    return this.#objects.size;
  }
  get(_: string, name: string): T | undefined {
    return this.#objects.get(name);
  }
  values(): Iterable<T> {
    return this.#objects.values();
  }
  set(name: string, object: T | undefined): void {
    const previous = this.#objects.get(name);
    if (object === undefined) this.#objects.delete(name);
    else this.#objects.set(name, object);
    for (const listener of this.#listeners) listener({ namespace: this.#namespace, name, object, previous });
  }
  onEach(listener: (change: Change<T>) => void): void {
    this.#listeners.push(listener);
  }
  onChange(): void {}
  ready = (): Promise<void> => Promise.resolve();
  health = () => ({ synced: true, watching: true });
  stop(): void {}
}
