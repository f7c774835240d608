/** Trims nodes and namespaces. */
import { architectureOf } from '../../cluster/objects.ts';
import type { KubeObject, Node, Taint } from '../../kube/api/objects.ts';
import { taintAnnotation } from '../taints/own-taint.ts';
import type { CachedNamespace, CachedNode } from './cached.ts';
import type { Share } from './sharing.ts';
import { timeOf } from './time.ts';

interface NodeWithState extends Node {
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
    os: share(status?.nodeInfo?.operatingSystem || labels['kubernetes.io/os']),
    hostname: labels['kubernetes.io/hostname'],
    taints: share((spec?.taints ?? []).map(taintOf)),
    ownTaintKey: share(metadata.annotations?.[taintAnnotation]),
    ready: status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false,
    createdAt: timeOf(metadata.creationTimestamp),
  };
}

function taintOf({ key, value, effect }: Taint): Taint {
  return value === undefined ? { key, effect } : { key, value, effect };
}

export function trimNamespace({ metadata = {} }: KubeObject): CachedNamespace {
  const { name = '', labels = {}, deletionTimestamp } = metadata;
  return { name, labels, deleting: deletionTimestamp !== undefined };
}
