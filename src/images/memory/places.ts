/**
 * Places for lookups in progress. Neither a namespace nor a registry host can use them up
 * (`fair-semaphore.ts`), so pods of other namespaces and images of other registries are looked up at once
 * while one registry keeps its callers waiting.
 */
import { FairSemaphore, FairSemaphores, type Leave } from '../../async/fair-semaphore.ts';
import type { ImageRequest } from '../facts/facts.ts';

/** Each lookup holds some kilobytes. Two thousand pods of a namespace may wait for new images. */
const maxWaiting = 8192;

export class LookupPlaces {
  readonly #all: FairSemaphore;
  readonly #ofHosts: FairSemaphores;

  /** @param places of all lookups together @param perHost of those at one registry host */
  constructor(places: number, perHost: number) {
    this.#all = new FairSemaphore({ places, maxWaiting });
    this.#ofHosts = new FairSemaphores({ places: perHost, maxWaiting });
  }

  /** A place if there is one now. */
  tryEnter({ namespace = '', reference }: ImageRequest): Leave | undefined {
    const leaveHost = this.#ofHosts.tryEnter(reference.domain, namespace);
    const leave = leaveHost && this.#all.tryEnter(namespace);
    if (leave) return both(leave, leaveHost);
    leaveHost?.();
    return undefined;
  }

  /** Callers wait at a slow host without a place that others need. @throws Overloaded, or the reason */
  async enter({ namespace = '', reference }: ImageRequest, signal: AbortSignal): Promise<Leave> {
    const leaveHost = await this.#ofHosts.enter(reference.domain, namespace, signal);
    try {
      return both(await this.#all.enter(namespace, signal), leaveHost);
    } catch (error) {
      leaveHost();
      throw error;
    }
  }
}

function both(first: Leave, second: Leave): Leave {
  return () => {
    first();
    second();
  };
}
