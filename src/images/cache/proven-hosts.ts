/**
 * Registry hosts that gave facts at their last lookup. The others, however many, share a few places: if they
 * keep their callers waiting, most places stay free for hosts that work. A new host is proven by its first
 * facts, and then nobody waits for it here any more.
 */
import { BoundedMap } from '../../async/bounded-map.ts';
import { FairSemaphore, type Leave } from '../../async/fair-semaphore.ts';
import type { ImageFacts } from '../facts/facts.ts';

/** Image references choose hosts. */
const maxHosts = 4096;
/** Fewer than an agent's requests of one webhook (`fleet/batches.ts`). */
const maxPlaces = 16;
/** Each waiting lookup holds some kilobytes. */
const maxWaiting = 4096;

/** A failure after this time: the host kept its caller waiting. */
const slowMs = 1000;

const nothing: Leave = () => undefined;

export class ProvenHosts {
  readonly #proven = new BoundedMap<string, true>(maxHosts);
  /** By host; aborted when it is proven. */
  readonly #waiting = new BoundedMap<string, AbortController>(maxHosts);
  readonly #places: FairSemaphore;

  /** @param places of all lookups; new hosts share a quarter of them at most */
  constructor(places: number) {
    this.#places = new FairSemaphore({ places: Math.min(maxPlaces, Math.ceil(places / 4)), maxWaiting });
  }

  /** The result of a lookup at the host. A quick failure tells nothing: other repositories may work. */
  record(host: string, { error, stale }: Pick<ImageFacts, 'error' | 'stale'>, tookMs: number): void {
    if (error && tookMs >= slowMs) this.#proven.delete(host);
    if (error || stale) return;
    this.#proven.set(host, true);
    this.#waiting.peek(host)?.abort(new Error('the host is proven'));
    this.#waiting.delete(host);
  }

  /** A place, if one is free or the host needs none. */
  tryEnter(host: string, namespace: string): Leave | undefined {
    return this.#proven.get(host) ? nothing : this.#places.tryEnter(namespace);
  }

  /** Waits for a place, or until the host is proven. @throws Overloaded, or the signal's reason */
  async enter(host: string, namespace: string, signal: AbortSignal): Promise<Leave> {
    if (this.#proven.get(host)) return nothing;
    const proven = this.#waiting.get(host) ?? new AbortController();
    this.#waiting.set(host, proven);
    try {
      return await this.#places.enter(namespace, AbortSignal.any([signal, proven.signal]));
    } catch (error) {
      if (proven.signal.aborted && !signal.aborted) return nothing;
      throw error;
    }
  }
}
