/** Bytes of request bodies that a process holds at the same time, from the first byte until the answer. */

/** Bodies up to this size have a share of their own: a pod has 5 KiB, and a few large bodies must not keep it out. */
const smallBytes = 256 * 1024;

export class BodyBudget {
  readonly #maxBytes: number;
  readonly #maxLargeBytes: number;
  #used = 0;

  /** @param maxBytes large bodies take at most three quarters of it */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.#maxLargeBytes = (maxBytes / 4) * 3;
  }

  /** Opens the account of one body. */
  open(): BodyShare {
    let held = 0;
    return {
      grow: (bytes) => {
        const limit = held + bytes > smallBytes ? this.#maxLargeBytes : this.#maxBytes;
        if (this.#used + bytes > limit) return false;
        held += bytes;
        this.#used += bytes;
        return true;
      },
      release: () => {
        this.#used -= held;
        held = 0;
      },
    };
  }
}

/** What one body holds of the budget. */
export interface BodyShare {
  /** @returns false if the budget has no room; then nothing is taken */
  grow(bytes: number): boolean;
  /** Gives everything back. */
  release(): void;
}
