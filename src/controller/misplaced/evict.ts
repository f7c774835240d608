/** One eviction of exactly the pod that was checked. */
import type { KubeClient } from '../../kube/api/client.ts';
import { KubeError, type KubeErrorCode } from '../../kube/api/errors.ts';
import { evictPod } from '../../kube/api/eviction.ts';
import type { Pod } from '../../kube/api/objects.ts';

/**
 * `evicted`: the pod goes. `changed`: it is no longer the same pod. `held`: not now, because of a PodDisruptionBudget or too many
 * requests. `failed`: the API server refuses. `isCertain`: the pod was certainly not evicted.
 */
export type Eviction =
  | { readonly outcome: 'evicted' | 'changed' }
  | { readonly outcome: 'held' | 'failed'; readonly why: string; readonly isCertain: boolean };

/** Answers from before the eviction is carried out. */
const refusals: ReadonlySet<KubeErrorCode> = new Set([
  'too-many-requests',
  'forbidden',
  'invalid',
  'unauthorized',
]);

/**
 * Requests the eviction once.
 * @param pod as it was just read: if it changed since, for example became ready, it stays
 * @throws KubeError if there is no answer, or leadership is lost
 */
export async function evict(
  pod: Pod,
  { client, signal }: { readonly client: KubeClient; readonly signal: AbortSignal },
): Promise<Eviction> {
  const { namespace = '', name = '', uid, resourceVersion } = pod.metadata ?? {};
  try {
    await evictPod(client, { namespace, name }, { uid, resourceVersion }, signal);
    return { outcome: 'evicted' };
  } catch (error) {
    if (!(error instanceof KubeError) || error.code === 'not-leading' || error.code === 'timeout')
      throw error;
    if (error.code === 'not-found' || error.code === 'conflict') return { outcome: 'changed' };
    // Two budgets for one pod are answered by 500, every time.
    const outcome = error.code === 'too-many-requests' ? 'held' : 'failed';
    return { outcome, why: error.message, isCertain: refusals.has(error.code) };
  }
}
