/** A cluster of nodes and pods for tests of taints, in an API server with a store. */
import type { Test } from 'tap';
import type { Leading } from '../../../src/controller/leadership/leading.ts';
import { createTaintReconciler, type TaintReconciler } from '../../../src/controller/taints/reconcile.ts';
import type { Node, Pod, Taint } from '../../../src/kube/api/objects.ts';
import { defaultConfiguration, type Configuration } from '../../../src/policy/configuration/configuration.ts';
import { policyFor } from '../../../src/policy/effective/effective.ts';
import type { Clock } from '../../../src/async/clock.ts';
import type { KubeStore } from '../../support/kube-store.ts';
import { leadOver, startLeading, type TestLeading, type TestLeadingOptions } from '../leading.ts';
import { noTimers } from '../../support/fake-clock.ts';

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

/** What the API server's admission gives every pod. */
const notReady = { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' };

export interface World extends TestLeading {
  readonly keeper: TaintReconciler;
  readonly leading: Leading;
  /** Puts another configuration in force. */
  configure(changes: Partial<Configuration>): void;
  taints(node: string): readonly Taint[];
  record(node: string): string | undefined;
  tolerations(name: string, namespace?: string): readonly object[];
  /** Resolves when the caches have what the store has. */
  settled(): Promise<void>;
}

export function putNode(
  store: KubeStore,
  name: string,
  architecture: string,
  more: {
    readonly taints?: readonly Taint[];
    readonly annotations?: Record<string, string>;
    readonly labels?: Record<string, string>;
  } = {},
): void {
  const { taints, annotations, labels } = more;
  store.put(`/api/v1/nodes/${name}`, {
    metadata: {
      name,
      ...(annotations && { annotations }),
      labels: { 'kubernetes.io/arch': architecture, ...labels },
    },
    spec: { ...(taints && { taints }) },
    status: {
      nodeInfo: { architecture, operatingSystem: 'linux' },
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  });
}

export interface PodOptions {
  readonly namespace?: string;
  readonly owner?: string;
  /** Of the owner. */
  readonly apiVersion?: string;
  readonly phase?: string;
  readonly ready?: boolean;
  readonly tolerations?: readonly object[];
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly spec?: object;
}

export function putPod(store: KubeStore, name: string, node: string, options: PodOptions = {}): void {
  const { namespace = 'shop', owner = 'ReplicaSet', phase = 'Running', ready = true } = options;
  store.put(`/api/v1/namespaces/${namespace}/pods/${name}`, {
    metadata: {
      name,
      namespace,
      labels: options.labels ?? {},
      annotations: options.annotations ?? {},
      ownerReferences: [
        {
          apiVersion: options.apiVersion ?? 'apps/v1',
          kind: owner,
          name: `of-${name}`,
          uid: `uid-${owner}-${name}`,
          controller: true,
        },
      ],
    },
    spec: {
      nodeName: node,
      containers: [{ name: 'app', image: 'app:1' }],
      tolerations: options.tolerations ?? [notReady],
      ...options.spec,
    },
    status: { phase, conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  });
}

export function putDaemonSet(store: KubeStore, podName: string, tolerations: readonly object[]): void {
  store.put(`/apis/apps/v1/namespaces/shop/daemonsets/of-${podName}`, {
    metadata: { name: `of-${podName}`, namespace: 'shop', uid: `uid-DaemonSet-${podName}` },
    spec: { template: { spec: { containers: [], tolerations } } },
  });
}

/** Time that passes when the test says so. */
export function fakeClock(): Clock & { pass(ms: number): void } {
  let now = 0;
  return { ...noTimers, now: () => now, monotonic: () => now, pass: (ms) => void (now += ms) };
}

/** A leader of taints on arm64, which does a round when the test says so. */
export async function startWorld(
  t: Test,
  options: TestLeadingOptions & { readonly over?: KubeStore; readonly clock?: Clock } = {},
): Promise<World> {
  const { over, clock, ...rest } = options;
  const test = over ? await leadOver(t, over, rest) : await startLeading(t, rest);
  const { store } = test;
  let configuration: Configuration = {
    ...defaultConfiguration(),
    namespace: 'archwright',
    taintArchitectures: ['arm64'],
    ...options.configuration,
  };
  const leading: Leading = {
    ...test.leading,
    ...(clock && { clock }),
    configuration: () => configuration,
    policies: { policyOf: () => policyFor(configuration) },
  };
  return {
    ...test,
    leading,
    keeper: createTaintReconciler(leading),
    configure: (changes) => {
      configuration = { ...configuration, ...changes };
    },
    taints: (node) => (store.get(`/api/v1/nodes/${node}`) as Node | undefined)?.spec?.taints ?? [],
    record: (node) =>
      (store.get(`/api/v1/nodes/${node}`) as Node | undefined)?.metadata?.annotations?.[annotation],
    tolerations: (name, namespace = 'shop') =>
      (store.get(`/api/v1/namespaces/${namespace}/pods/${name}`) as Pod | undefined)?.spec.tolerations ?? [],
    settled: () => settled(store, leading),
  };
}

async function settled(store: KubeStore, { caches }: Leading): Promise<void> {
  await store.until(() => {
    const nodes = store.list('/api/v1/nodes');
    const pods = store.list('/api/v1/pods');
    return (
      nodes.length === caches.nodes.size &&
      pods.length === caches.runningPods.size &&
      nodes.every(
        ({ metadata }) =>
          caches.nodes.get('', metadata.name ?? '')?.resourceVersion === metadata.resourceVersion,
      ) &&
      pods.every(
        ({ metadata }) =>
          caches.runningPods.get(metadata.namespace ?? '', metadata.name ?? '')?.resourceVersion ===
          metadata.resourceVersion,
      )
    );
  }, 'the caches');
}
