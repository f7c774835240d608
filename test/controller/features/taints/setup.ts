/** A cluster of nodes and pods for tests of taints, in an API server with a store. */
import type { Test } from 'tap';
import { createTaints } from '../../../../src/controller/features/taints/taints.ts';
import type { Node, Pod, Taint } from '../../../../src/kube/api/objects.ts';
import type { KubeStore } from '../../../support/kube-store.ts';
import {
  controllerRef,
  putNode,
  putPod as putAnyPod,
  type PodOptions as AnyPodOptions,
} from '../../objects.ts';
import { startLeader, type TestLeaderOptions } from '../../leader.ts';

export const key = 'arch.example/architecture';
export const annotation = 'arch.example/taint';

export const taintOf = (architecture: string, name = key): Taint => ({
  key: name,
  value: architecture,
  effect: 'NoSchedule',
});

export const tolerationOf = (architecture: string, name = key): object => ({
  key: name,
  operator: 'Equal',
  value: architecture,
  effect: 'NoSchedule',
});

/** The API server's admission adds this to every pod. */
const notReady = { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' };

export type World = Awaited<ReturnType<typeof startWorld>>;

export { putNode };

export interface PodOptions extends Omit<AnyPodOptions, 'owner'> {
  /** Its kind. */
  readonly owner?: string;
  /** Of the owner. */
  readonly apiVersion?: string;
  readonly tolerations?: readonly object[];
}

export function putPod(store: KubeStore, name: string, node: string, options: PodOptions = {}): void {
  const { owner: kind = 'ReplicaSet', apiVersion, tolerations = [notReady], spec, ...more } = options;
  const uid = `uid-${kind}-${name}`;
  const owner = controllerRef(kind, `of-${name}`, { uid, ...(apiVersion && { apiVersion }) });
  putAnyPod(store, name, { ...more, node, owner, spec: { tolerations, ...spec } });
}

export function putDaemonSet(store: KubeStore, podName: string, tolerations: readonly object[]): void {
  store.put(`/apis/apps/v1/namespaces/shop/daemonsets/of-${podName}`, {
    metadata: { name: `of-${podName}`, namespace: 'shop', uid: `uid-DaemonSet-${podName}` },
    spec: { template: { spec: { containers: [], tolerations } } },
  });
}

export interface WorldOptions extends TestLeaderOptions {
  /** Architecture by name. Default: one node, `arm-1`. */
  readonly nodes?: Readonly<Record<string, string>>;
}

/** A leader that taints arm64 nodes. A test calls its reconciles, and refused pods are due at once, or by its clock. */
export async function startWorld(t: Test, options: WorldOptions = {}) {
  const { nodes = options.over ? {} : { 'arm-1': 'arm64' }, ...rest } = options;
  const configuration = { taintArchitectures: ['arm64'], ...rest.configuration };
  const test = await startLeader(t, { ...rest, configuration });
  const { store, leader } = test;
  for (const [name, architecture] of Object.entries(nodes)) putNode(store, name, architecture);
  const due = new Map<string, number>();
  const work = createTaints(leader, (key) => void due.set(key, 0));
  const reconcileNodes = async (): Promise<void> => {
    await test.settled();
    await work.reconcile('nodes', leader.signal);
  };
  const node = (name: string): Node | undefined => store.get(`/api/v1/nodes/${name}`) as Node | undefined;
  return {
    ...test,
    /** Pods in between: those that lack a toleration get it, then nodes their taint. */
    reconcilePods: async (): Promise<void> => {
      await reconcileNodes();
      const pods = [...due];
      for (const [key, at] of pods) {
        if (options.clock && at > options.clock.monotonic()) continue;
        due.delete(key);
        const result = await work.reconcile(key, leader.signal);
        if (result?.requeueAfterMs) due.set(key, (options.clock?.monotonic() ?? 0) + result.requeueAfterMs);
      }
      await reconcileNodes();
    },
    reconcileNodes,
    taints: (name: string): readonly Taint[] => node(name)?.spec?.taints ?? [],
    record: (name: string): string | undefined => node(name)?.metadata?.annotations?.[annotation],
    tolerations: (name: string, namespace = 'shop'): readonly object[] =>
      (store.get(`/api/v1/namespaces/${namespace}/pods/${name}`) as Pod | undefined)?.spec.tolerations ?? [],
  };
}
