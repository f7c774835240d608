/** The Eviction API (policy/v1): deletes a pod unless a PodDisruptionBudget forbids it. */
import type { KubeClient } from './client.ts';
import { paths } from './paths.ts';

/**
 * Requests the eviction of one pod.
 * @param preconditions only this very pod, and in this version, is evicted
 * @throws KubeError, `too-many-requests` if a budget forbids it now, `conflict` if a precondition fails
 */
export async function evictPod(
  client: KubeClient,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  preconditions: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined },
  signal: AbortSignal,
): Promise<void> {
  const metadata = { namespace, name };
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata, deleteOptions: { preconditions } };
  await client.create(`${paths.pods(namespace, name)}/eviction`, eviction, { signal });
}
