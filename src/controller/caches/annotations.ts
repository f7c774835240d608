/** Of the annotations, those that decisions look at: others hold whole manifests. */
import type { ObjectMeta } from '../../kube/api/objects.ts';

/** Ours, and the one that the kubelet sets on the API's copy of a static pod. */
const kept = /^arch\.example\/|^kubernetes\.io\/config\.mirror$/u;

/** @returns `undefined` if none is kept */
export function keptAnnotations(annotations: ObjectMeta['annotations']): ObjectMeta['annotations'] {
  const entries = Object.entries(annotations ?? {}).filter(([key]) => kept.test(key));
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}
