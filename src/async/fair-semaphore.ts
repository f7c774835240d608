/**
 * A concurrency limit that no key (a namespace, a registry) can use up: of n busy keys, each may hold at most
 * 1/(n+1) of the places that are free. One busy key gets a third of all places. Eight of them, one after the
 * other, leave a fifth, so a key that comes later finds a place at once, however long the others hold theirs
 * (dynamic thresholds, Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet
 * Switches", 1998). Callers without a place wait: first in, first out for one key, round robin over the keys.
 */
import { FairQueue } from './fair-queue.ts';

export interface FairLimits {
  readonly places: number;
  /** Callers that wait, shared by the same rule: one busy key gets a third. Default: as many as come. */
  readonly maxWaiting?: number;
}

/** Too many callers wait already. */
export class Overloaded extends Error {
  override readonly name = 'Overloaded';
}

/** Has no stack of its own, which would cost more than the refusal. */
const tooMany = new Overloaded('too many callers wait for a place');

/** Gives the place back; a second call has no effect. */
export type Leave = () => void;

export class FairSemaphore {
  readonly #limits: FairLimits;
  readonly #held = new Map<string, number>();
  readonly #waiting = new FairQueue<() => void>();
  #free: number;

  constructor(limits: FairLimits) {
    this.#limits = limits;
    this.#free = limits.places;
  }

  get hasFree(): boolean {
    return this.#free > 0;
  }

  /** No place is held, so nobody waits either. */
  get isIdle(): boolean {
    return this.#held.size === 0;
  }

  /** A place if the key may have one now. */
  tryEnter(key: string): Leave | undefined {
    return this.#hasRoom(key) ? this.#take(key) : undefined;
  }

  /** Waits for a place. @throws Overloaded, or the signal's reason if it aborts first */
  enter(key: string, signal: AbortSignal): Promise<Leave> {
    const { promise, resolve, reject } = Promise.withResolvers<Leave>();
    if (signal.aborted) reject(signal.reason as Error);
    // A key that waits already has no room, because places that become free are given away at once.
    else if (this.#hasRoom(key)) resolve(this.#take(key));
    else if (this.#isFull(key)) reject(tooMany);
    else {
      const abort = (): void => {
        this.#waiting.delete(key, go);
        reject(signal.reason as Error);
      };
      const go = (): void => {
        signal.removeEventListener('abort', abort);
        resolve(this.#take(key));
      };
      this.#waiting.add(key, go);
      signal.addEventListener('abort', abort, { once: true });
    }
    return promise;
  }

  #hasRoom(key: string): boolean {
    return isWithinShare(this.#held.get(key) ?? 0, this.#free, this.#held.size);
  }

  #isFull(key: string): boolean {
    const { maxWaiting = Number.POSITIVE_INFINITY } = this.#limits;
    const waiting = this.#waiting;
    return !isWithinShare(waiting.sizeOf(key), maxWaiting - waiting.size, waiting.keys);
  }

  #take(key: string): Leave {
    this.#free -= 1;
    this.#held.set(key, (this.#held.get(key) ?? 0) + 1);
    let isHeld = true;
    return () => {
      if (isHeld) this.#release(key);
      isHeld = false;
    };
  }

  #release(key: string): void {
    this.#free += 1;
    const held = (this.#held.get(key) ?? 1) - 1;
    if (held === 0) this.#held.delete(key);
    else this.#held.set(key, held);
    // One place more is free for every key, so more than one caller may go.
    const next = () => this.#waiting.take((each) => this.#hasRoom(each));
    for (let go = next(); go !== undefined; go = next()) go();
  }
}

/** Whether a key that holds so many may have one more. Any key gets one, as long as there are any. */
function isWithinShare(held: number, free: number, busyKeys: number): boolean {
  if (held === 0 || free === 0) return free > 0;
  return held + 1 <= free / (busyKeys + 1);
}

/** A semaphore for each resource, such as a host or an agent. Idle ones leave when a new one comes. */
export class FairSemaphores {
  readonly #limits: FairLimits;
  readonly #byResource = new Map<string, FairSemaphore>();

  constructor(limits: FairLimits) {
    this.#limits = limits;
  }

  /** The places of a resource, for a caller that enters at once. */
  get(resource: string): FairSemaphore {
    const known = this.#byResource.get(resource);
    if (known) return known;
    for (const [name, { isIdle }] of this.#byResource) if (isIdle) this.#byResource.delete(name);
    const semaphore = new FairSemaphore(this.#limits);
    this.#byResource.set(resource, semaphore);
    return semaphore;
  }
}
