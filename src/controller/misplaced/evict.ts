/** One eviction, by the Eviction API: PodDisruptionBudgets hold, and only the very pod that was looked at goes. */
import type { KubeClient } from '../../kube/api/client.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { Pod } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';

/**
 * `evicted`: the pod goes. `held`: not now, for the reason given: a PodDisruptionBudget, or too many requests. `changed`: it
 * is not the same any more. `failed`: the API server refuses it. `stays`: surely nothing was evicted.
 */
export type Eviction =
  | { readonly outcome: 'evicted' | 'changed' }
  | { readonly outcome: 'held' | 'failed'; readonly why: string; readonly stays: boolean };

/** What the API server, or whoever it asks, says before anything is done. */
const refusals: ReadonlySet<string> = new Set(['too-many-requests', 'forbidden', 'invalid', 'unauthorized']);

/**
 * Asks for it once.
 * @param pod as it was just read: where it changed since, such as by becoming ready, it stays
 * @throws KubeError where there is no answer, or leadership is lost
 */
export async function evict(
  pod: Pod,
  { client, signal }: { readonly client: KubeClient; readonly signal: AbortSignal },
): Promise<Eviction> {
  const { namespace = '', name = '', uid, resourceVersion } = pod.metadata ?? {};
  const path = `${paths.pods(namespace, name)}/eviction`;
  const eviction = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name, namespace },
    deleteOptions: { preconditions: { uid, resourceVersion } },
  };
  try {
    await client.create(path, eviction, { signal });
    return { outcome: 'evicted' };
  } catch (error) {
    if (!(error instanceof KubeError) || error.code === 'not-leading' || error.code === 'timeout')
      throw error;
    if (error.code === 'not-found' || error.code === 'conflict') return { outcome: 'changed' };
    // Two budgets for one pod are answered by 500, and stay so.
    const outcome = error.code === 'too-many-requests' ? 'held' : 'failed';
    return { outcome, why: error.message, stays: refusals.has(error.code) };
  }
}
