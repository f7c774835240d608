/** Reads waiting pods that the cache has no room for, each time they are decided. */
import { createRateLimiter, RateLimiters, type RateLimiter } from '../../async/rate-limiter.ts';
import { ignoring } from '../../kube/api/errors.ts';
import type { KubeObject, Pod } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import { trimWaitingPod } from '../caches/waiting-pods.ts';
import type { Leading } from '../leadership/leading.ts';

/** A pod with 60,000 labels takes 150 ms to read. */
const reads = { perSecond: 2, burst: 10 };
const readsOfNamespace = { perSecond: 0.5, burst: 5 };
const maxNamespaces = 5000;

export class IncompletePods {
  readonly #client: Leading['client'];
  readonly #limiter: RateLimiter;
  readonly #limiters: RateLimiters;

  constructor(leading: Pick<Leading, 'client' | 'clock'>) {
    this.#client = leading.client;
    this.#limiter = createRateLimiter({ ...reads, clock: leading.clock });
    this.#limiters = new RateLimiters({ ...readsOfNamespace, clock: leading.clock }, maxNamespaces);
  }

  /**
   * @returns the pod with the fields of a decision; `undefined`: it is gone, or waits no more; milliseconds:
   * until the next read of its namespace
   * @throws KubeError
   */
  async read({ metadata = {} }: Pod, signal: AbortSignal): Promise<Pod | number | undefined> {
    const { name = '', namespace = '', uid } = metadata;
    const waitMs = this.#limiters.of(namespace).tryTake() || this.#limiter.tryTake();
    if (waitMs > 0) return Math.ceil(waitMs);
    const now = await ignoring(
      'not-found',
      this.#client.get<KubeObject>(paths.pods(namespace, name), { signal }),
    );
    return now?.metadata?.uid === uid ? now && trimWaitingPod(now, (value) => value)?.pod : undefined;
  }
}
