/** Nodes that exist as objects only; kwok keeps them ready and lets their pods run. */
import type { Node } from '../../../../src/kube/api/objects.ts';
import { hasCondition, type Condition } from './watch.ts';

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
  /** As `containerd://2.1.4`. Default: not known. */
  readonly runtime?: string;
}

export interface NodeObject extends Node {
  readonly spec?: { readonly taints?: readonly Taint[] };
  readonly status?: Node['status'] & { readonly conditions?: readonly Condition[] };
}

/** `{amd64: 2}` → `amd64-0`, `amd64-1`. */
export function plainNodes(counts: Readonly<Record<string, number>>): readonly FakeNode[] {
  return Object.entries(counts).flatMap(([architecture, count]) =>
    Array.from({ length: count }, (_, index) => ({ name: `${architecture}-${index}`, architecture })),
  );
}

/** A node is ready a moment after it is created. */
export function nodeToCreate({
  name,
  architecture,
  labels,
  taints = [],
  pods = 110,
  runtime = '',
}: FakeNode): object {
  const size = { cpu: '64', memory: '256Gi', pods: String(pods) };
  const unknown =
    'containerRuntimeVersion kernelVersion osImage bootID machineID systemUUID kubeProxyVersion';
  return {
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
        ...Object.fromEntries(unknown.split(' ').map((field) => [field, ''])),
        operatingSystem: 'linux',
        architecture,
        containerRuntimeVersion: runtime,
        kubeletVersion: 'v1.36.3',
      },
    },
  };
}

/** Ready, and without the node controller's taints, which it removes a moment later. */
export function takesPods(node: NodeObject | undefined): boolean {
  const taints = node?.spec?.taints ?? [];
  return hasCondition(node, 'Ready') && !taints.some(({ key }) => key.startsWith('node.kubernetes.io/'));
}

export function ownTaints(node: NodeObject | undefined): readonly Taint[] {
  return (node?.spec?.taints ?? []).filter(({ key }) => key.startsWith('arch.example/'));
}
