/**
 * A concurrency limit for each host: further requests wait in order of arrival. A mirror has one lane for each registry behind
 * it, and one lane gets at most half of the places, so that one slow registry does not block the others.
 */

/** Registries and their proxies throttle clients with many connections. A response takes 50 to 400 ms: 40 images a second or more. */
export const defaultPerHost = 16;

export class HostSemaphore {
  readonly #hosts = new Map<string, Host>();
  readonly #perHost: number;

  constructor(perHost = defaultPerHost) {
    this.#perHost = perHost;
  }

  /**
   * Waits for a place at a host.
   * @param lane the host itself, or a registry behind it
   * @returns releases the place; a second call has no effect
   * @throws the signal's reason if it aborts first
   */
  async enter(name: string, signal: AbortSignal, lane = name): Promise<() => void> {
    signal.throwIfAborted();
    const host = this.#hosts.get(name) ?? new Host(name, this.#perHost, () => this.#hosts.delete(name));
    this.#hosts.set(name, host);
    return await host.enter(lane, signal);
  }
}

interface Waiter {
  readonly lane: string;
  readonly go: () => void;
}

class Host {
  readonly #name: string;
  readonly #places: number;
  readonly #onEmpty: () => void;
  readonly #lanes = new Map<string, number>();
  readonly #waiting = new Set<Waiter>();
  #inside = 0;

  constructor(name: string, places: number, onEmpty: () => void) {
    this.#name = name;
    this.#places = places;
    this.#onEmpty = onEmpty;
  }

  enter(lane: string, signal: AbortSignal): Promise<() => void> {
    if (this.#hasRoom(lane)) return Promise.resolve(this.#take(lane));
    const { promise, resolve, reject } = Promise.withResolvers<() => void>();
    const waiter: Waiter = {
      lane,
      // Takes the place at once, before a later request can find it free.
      go: () => {
        signal.removeEventListener('abort', abort);
        resolve(this.#take(lane));
      },
    };
    const abort = (): void => {
      this.#waiting.delete(waiter);
      reject(signal.reason as Error);
    };
    this.#waiting.add(waiter);
    signal.addEventListener('abort', abort, { once: true });
    return promise;
  }

  #hasRoom(lane: string): boolean {
    const perLane = Math.max(1, Math.ceil(this.#places / 2));
    const isHost = lane === this.#name;
    return this.#inside < this.#places && (isHost || (this.#lanes.get(lane) ?? 0) < perLane);
  }

  #take(lane: string): () => void {
    this.#inside += 1;
    this.#lanes.set(lane, (this.#lanes.get(lane) ?? 0) + 1);
    let isReleased = false;
    return () => {
      if (!isReleased) this.#release(lane);
      isReleased = true;
    };
  }

  #release(lane: string): void {
    this.#inside -= 1;
    const inLane = (this.#lanes.get(lane) ?? 1) - 1;
    if (inLane === 0) this.#lanes.delete(lane);
    else this.#lanes.set(lane, inLane);
    for (const waiter of this.#waiting) {
      if (!this.#hasRoom(waiter.lane)) continue;
      this.#waiting.delete(waiter);
      waiter.go();
      return;
    }
    if (this.#inside === 0) this.#onEmpty();
  }
}
