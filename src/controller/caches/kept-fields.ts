/** What several trims take of an object. */
import type { ObjectMeta } from '../../kube/api/objects.ts';

/** Our annotations, and the one that the kubelet sets on the API's copy of a static pod. Others hold whole manifests. */
const kept = /^arch\.example\/|^kubernetes\.io\/config\.mirror$/u;

/** The annotations that decisions look at; `undefined` if there are none. */
export function keptAnnotations(annotations: ObjectMeta['annotations']): ObjectMeta['annotations'] {
  const entries = Object.entries(annotations ?? {}).filter(([key]) => kept.test(key));
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** A time in RFC 3339, by the API server's clock, as milliseconds since 1970; 0 if it is missing or cannot be parsed. */
export function timeOf(text: string | undefined): number {
  const time = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(time) ? 0 : time;
}

/** Of the status of a pod or a node. */
export interface WithConditions {
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
}

export function isReady(status: WithConditions | undefined): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
}
