/** Objects of a cluster as the API server has them, with defaults. */
import type { Taint } from '../../src/kube/api/objects.ts';
import type { KubeStore, StoredObject } from '../support/kube-store.ts';

/** An owner that controls its pods. Default: of the group apps, with its name as uid. */
export function controllerRef(kind: string, name: string, more: { uid?: string; apiVersion?: string } = {}) {
  return { apiVersion: 'apps/v1', kind, name, uid: name, controller: true, ...more };
}

/** The status of a node that is ready. */
export function nodeStatus(architecture: string, operatingSystem = 'linux') {
  return { nodeInfo: { architecture, operatingSystem }, conditions: [readyIs(true)] };
}

export function readyIs(ready: boolean) {
  return { type: 'Ready', status: ready ? 'True' : 'False' };
}

/** The data of a ConfigMap. */
export function dataAt(store: KubeStore, path: string): Readonly<Record<string, string>> {
  return (store.get(path) as { data?: Record<string, string> } | undefined)?.data ?? {};
}

/** A ReplicaSet of a Deployment. */
export function putReplicaSet(
  store: KubeStore,
  name: string,
  deployment: ReturnType<typeof controllerRef>,
  { namespace = 'shop', uid = name, ...more }: { namespace?: string; uid?: string; spec?: object } = {},
): void {
  store.put(`/apis/apps/v1/namespaces/${namespace}/replicasets/${name}`, {
    metadata: { name, namespace, uid, ownerReferences: [deployment] },
    ...more,
  });
}

export interface NodeOptions {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly taints?: readonly Taint[];
  readonly os?: string;
  readonly spec?: object;
}

/** A ready node. */
export function nodeObject(name: string, architecture: string, options: NodeOptions = {}) {
  const { labels, annotations = {}, taints = [], os, spec } = options;
  return {
    metadata: { name, annotations, labels: { 'kubernetes.io/arch': architecture, ...labels } },
    spec: { taints, ...spec },
    status: nodeStatus(architecture, os),
  };
}

export function putNode(store: KubeStore, name: string, architecture: string, options?: NodeOptions): void {
  store.put(`/api/v1/nodes/${name}`, nodeObject(name, architecture, options));
}

export interface PodOptions {
  /** Default: `shop`. */
  readonly namespace?: string;
  /** Empty: none yet. */
  readonly node?: string;
  /** Default: the ReplicaSet `web-1`. `null`: none. */
  readonly owner?: object | null;
  readonly image?: string;
  readonly imageID?: string;
  readonly pullPolicy?: string;
  readonly phase?: string;
  readonly ready?: boolean;
  readonly createdAt?: number;
  readonly scheduledAt?: number;
  /** When it became ready, or not. */
  readonly changedAt?: number;
  readonly metadata?: object;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: object;
  /** Of the container. */
  readonly status?: object;
}

export function podPath(name: string, namespace = 'shop'): string {
  return `/api/v1/namespaces/${namespace}/pods/${name}`;
}

/** A pod with one container, `app`. Default: it runs, and is ready. */
export function putPod(store: KubeStore, name: string, options: PodOptions = {}): StoredObject {
  const { namespace, node = 'n1', owner = controllerRef('ReplicaSet', 'web-1') } = options;
  const { createdAt, scheduledAt, changedAt } = options;
  const scheduled = { type: 'PodScheduled', status: 'True' };
  const { image = 'app:1', imageID = '', pullPolicy = 'IfNotPresent', phase = 'Running' } = options;
  const { ready = true, labels = {}, annotations = {} } = options;
  return store.put(podPath(name, namespace), {
    metadata: {
      labels,
      annotations,
      ...(createdAt !== undefined && { creationTimestamp: seconds(createdAt) }),
      ...(owner && { ownerReferences: [owner] }),
      ...options.metadata,
    },
    spec: {
      ...(node !== '' && { nodeName: node }),
      containers: [{ name: 'app', image, imagePullPolicy: pullPolicy }],
      tolerations: [],
      ...options.spec,
    },
    status: {
      phase,
      conditions: [
        ...(scheduledAt === undefined ? [] : [{ ...scheduled, lastTransitionTime: seconds(scheduledAt) }]),
        { ...readyIs(ready), ...(changedAt !== undefined && { lastTransitionTime: seconds(changedAt) }) },
      ],
      containerStatuses: [{ name: 'app', image, imageID, ready, ...options.status }],
    },
  });
}

function seconds(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
