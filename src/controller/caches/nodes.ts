/** What is kept of a node. */
import { architectureOf } from '../../cluster/objects.ts';
import type { KubeObject, Node } from '../../kube/objects.ts';
import type { CachedNode } from '../caches.ts';
import type { Share } from './sharing.ts';
import { timeOf } from './time.ts';

interface NodeWithState extends Node {
  readonly spec?: {
    readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
  };
  readonly status?: Node['status'] & {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

export function trimNode(object: KubeObject, share: Share): CachedNode {
  const node = object as NodeWithState;
  const { metadata = {}, spec, status } = node;
  const { labels = {} } = metadata;
  return {
    name: share(metadata.name ?? ''),
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    architecture: share(architectureOf(node)),
    os: share(status?.nodeInfo?.operatingSystem ?? labels['kubernetes.io/os']),
    hostname: labels['kubernetes.io/hostname'],
    taints: share((spec?.taints ?? []).map(taintOf)),
    ready: status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false,
    createdAt: timeOf(metadata.creationTimestamp),
  };
}

function taintOf({ key, value, effect }: CachedNode['taints'][number]): CachedNode['taints'][number] {
  return value === undefined ? { key, effect } : { key, value, effect };
}
