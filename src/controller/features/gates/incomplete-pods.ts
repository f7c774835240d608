/** Reads waiting pods that the cache has no room for, each time they are decided. */
import { createRateLimiter, RateLimiters } from '../../../async/rate-limiter.ts';
import { ignoring } from '../../../kube/api/errors.ts';
import type { KubeObject, Pod } from '../../../kube/api/objects.ts';
import { paths } from '../../../kube/api/paths.ts';
import { trimWaitingPod } from '../../state/waiting-pods.ts';
import type { LeaderContext } from '../../lead/feature.ts';

/** A pod with 60,000 labels takes 150 ms to read. */
const reads = { perSecond: 2, burst: 10 };
const readsOfNamespace = { perSecond: 0.5, burst: 5 };
const maxNamespaces = 5000;

export type PodRead =
  /** With the fields of a decision. */
  | { readonly kind: 'waiting'; readonly pod: Pod }
  /** It does not exist any more, or waits no more. */
  | { readonly kind: 'gone' }
  /** Its namespace may read again after `ms`. */
  | { readonly kind: 'later'; readonly ms: number };

/** @returns reads a pod now @throws KubeError */
export function createPodReader({ client, clock }: Pick<LeaderContext, 'client' | 'clock'>) {
  const limiter = createRateLimiter({ ...reads, clock });
  const limiters = new RateLimiters({ ...readsOfNamespace, clock }, maxNamespaces);
  return async ({ metadata = {} }: Pod, signal: AbortSignal): Promise<PodRead> => {
    const { name = '', namespace = '', uid } = metadata;
    const waitMs = limiters.of(namespace).tryTake() || limiter.tryTake();
    if (waitMs > 0) return { kind: 'later', ms: Math.ceil(waitMs) };
    const reading = client.get<KubeObject>(paths.pods(namespace, name), { signal });
    const now = await ignoring('not-found', reading);
    const trimmed = now?.metadata?.uid === uid && now && trimWaitingPod(now, (value) => value);
    return trimmed ? { kind: 'waiting', pod: trimmed.pod } : { kind: 'gone' };
  };
}
