/** Nodes that exist as objects only; kwok keeps them ready and lets their pods run. */
import type { KubeClient } from '../../../src/kube/api/client.ts';
import type { Node } from '../../../src/kube/api/objects.ts';

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

export interface FakeNode {
  readonly name: string;
  readonly architecture: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly Taint[];
  /** 110 by default. */
  readonly pods?: number;
}

/** The fields of a node that tests read. */
export interface NodeObject extends Node {
  readonly spec?: { readonly taints?: readonly Taint[] };
  readonly status?: Node['status'] & {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** `{amd64: 2}` → `amd64-0`, `amd64-1`. */
export function plainNodes(counts: Readonly<Record<string, number>>): readonly FakeNode[] {
  return Object.entries(counts).flatMap(([architecture, count]) =>
    Array.from({ length: count }, (_, index) => ({ name: `${architecture}-${index}`, architecture })),
  );
}

/** Creates a node; it is ready a moment later. */
export async function createNode(client: KubeClient, node: FakeNode): Promise<void> {
  const { name, architecture, labels = {}, taints = [], pods = 110 } = node;
  const size = { cpu: '64', memory: '256Gi', pods: String(pods) };
  await client.create(
    '/api/v1/nodes',
    {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name,
        annotations: { 'kwok.x-k8s.io/node': 'fake' },
        labels: {
          'kubernetes.io/os': 'linux',
          'kubernetes.io/arch': architecture,
          'kubernetes.io/hostname': name,
          ...labels,
        },
      },
      spec: { taints },
      status: {
        capacity: size,
        allocatable: size,
        nodeInfo: {
          operatingSystem: 'linux',
          architecture,
          kubeletVersion: 'v1.36.3',
          containerRuntimeVersion: '',
          kernelVersion: '',
          osImage: '',
          bootID: '',
          machineID: '',
          systemUUID: '',
          kubeProxyVersion: '',
        },
      },
    },
    { signal: AbortSignal.timeout(30_000) },
  );
}

export function isReady(node: NodeObject): boolean {
  return (node.status?.conditions ?? []).some(({ type, status }) => type === 'Ready' && status === 'True');
}

/** Ready, and without the node controller's taints, which it removes a moment later. */
export function takesPods(node: NodeObject | undefined): boolean {
  if (node === undefined || !isReady(node)) return false;
  return !(node.spec?.taints ?? []).some(({ key }) => key.startsWith('node.kubernetes.io/'));
}
