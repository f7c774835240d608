/**
 * DaemonSets and their pods. The template is read when it matters, which is seldom: a pod may have an older one, with the strategy
 * OnDelete or during a rollout.
 */
import type { KubeClient } from '../../kube/api/client.ts';
import { isCode } from '../../kube/api/errors.ts';
import type { KubeObject, OwnerReference, PodTemplate } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';

/** Those that the webhook places; of this kind in other API groups (OpenKruise) we know nothing. */
export const daemonSetApiVersion = 'apps/v1';

interface DaemonSet extends KubeObject {
  readonly spec?: { readonly template?: PodTemplate };
}

/** Whether a pod's owner makes one for each node. */
export function isDaemon<T extends { readonly owner: OwnerReference | undefined }>(
  pod: T,
): pod is T & { readonly owner: OwnerReference } {
  return pod.owner?.kind === 'DaemonSet';
}

/**
 * The template that a DaemonSet makes its next pod from.
 * @returns `gone` if the DaemonSet does not exist any more; `unknown` without the right to read it, or for another API group
 * @throws KubeError if there is no answer
 */
export async function daemonTemplateOf(
  { namespace, owner }: { readonly namespace: string; readonly owner: OwnerReference },
  { client, signal }: { readonly client: KubeClient; readonly signal: AbortSignal },
): Promise<PodTemplate | 'gone' | 'unknown'> {
  if (owner.apiVersion !== daemonSetApiVersion) return 'unknown';
  const path = paths.daemonSets(namespace, owner.name);
  try {
    const { metadata, spec } = await client.get<DaemonSet>(path, { signal });
    return metadata?.uid === owner.uid ? (spec?.template ?? 'unknown') : 'gone';
  } catch (error) {
    if (isCode(error, 'not-found')) return 'gone';
    if (isCode(error, 'forbidden')) return 'unknown';
    throw error;
  }
}
