/**
 * The only way to evict a pod. `evictionsPerMinute` limits all features of the leader together. Owners with
 * due evictions get equal shares at most: each namespace with rollouts, and all misplaced pods together.
 */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { Clock } from '../../async/clock.ts';
import { evictPod } from '../../kube/api/change.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { Pod } from '../../kube/api/objects.ts';
import type { Configuration } from '../../policy/configuration/configuration.ts';

interface EvictorOptions {
  readonly client: KubeClient;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly configuration: () => Pick<Configuration, 'evictionsPerMinute'>;
}

/**
 * `evicted`: the pod goes. `changed`: it is no longer the same pod. `held`: not now (PodDisruptionBudget, too
 * many requests). `failed`: the API server refuses. `later`: the limit permits one after `ms` milliseconds.
 */
export type Eviction =
  | { readonly outcome: 'evicted' | 'changed' }
  | { readonly outcome: 'held' | 'failed'; readonly why: string }
  | { readonly outcome: 'later'; readonly ms: number };

/** Rollouts are looked at every five seconds, or later if their images are slow to answer. */
const wantedMs = 30_000;
const maxOwners = 5000;

export type Evict = ReturnType<typeof createEvictor>;

export function createEvictor({ client, signal, clock, configuration }: EvictorOptions) {
  const owners = new BoundedMap<string, { readonly askedAt: number; readonly tookAt: number }>(maxOwners);
  let lastAt = -Infinity;

  /** @returns milliseconds until the owner may evict; 0: now, and its place is taken */
  function acquire(owner: string): number {
    const now = clock.monotonic();
    const everyMs = 60_000 / configuration().evictionsPerMinute;
    const { tookAt = -Infinity } = owners.get(owner) ?? {};
    owners.set(owner, { askedAt: now, tookAt });
    const wanting = [...owners.values()].filter(({ askedAt }) => now - askedAt < wantedMs).length;
    const at = Math.max(lastAt + everyMs, tookAt + wanting * everyMs);
    if (at > now) return at - now;
    lastAt = now;
    owners.set(owner, { askedAt: now, tookAt: now });
    return 0;
  }

  /**
   * Evicts a pod once, if the limit permits it now.
   * @param owner whose share of the limit it takes
   * @param read reads the pod as it is now; `undefined`: it stays. The API server charges an eviction to the
   * PodDisruptionBudget for two minutes, even if the precondition fails because a cache was late (kubernetes
   * pkg/registry/core/pod/storage/eviction.go)
   * @throws KubeError if there is no answer, or leadership is lost
   */
  return async (owner: string, read: () => Promise<Pick<Pod, 'metadata'> | undefined>): Promise<Eviction> => {
    const ms = acquire(owner);
    if (ms > 0) return { outcome: 'later', ms };
    const pod = await read();
    if (pod === undefined) return { outcome: 'changed' };
    const { namespace = '', name = '', uid, resourceVersion } = pod.metadata ?? {};
    try {
      await evictPod(client, { namespace, name }, { uid, resourceVersion }, signal);
      return { outcome: 'evicted' };
    } catch (error) {
      if (!(error instanceof KubeError) || error.code === 'not-leading' || error.code === 'timeout')
        throw error;
      if (error.code === 'not-found' || error.code === 'conflict') return { outcome: 'changed' };
      // Two budgets for one pod are answered by 500, every time.
      return { outcome: error.code === 'too-many-requests' ? 'held' : 'failed', why: error.message };
    }
  };
}

/** How many pods of a workload may be unavailable. */
export function maxUnavailable(total: number, percent: number): number {
  return Math.max(1, Math.floor((total * percent) / 100));
}
