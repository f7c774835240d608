/**
 * Bytes of request bodies that a process holds at the same time, from the first byte until the answer. Bytes
 * count when they arrive: an announced length costs the client nothing.
 */

/** Smaller bodies have their own share: a pod has 5 KiB, and large bodies must not exclude it. */
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

  /** Less than a quarter is in use. */
  get isQuiet(): boolean {
    return this.#used < this.#maxBytes / 4;
  }

  /** Opens the account of one body. */
  open(): BodyShare {
    let held = 0;
    const fits = (bytes: number, expected: number): boolean => {
      const isLarge = Math.max(expected, held + bytes) > smallBytes;
      return this.#used + bytes <= (isLarge ? this.#maxLargeBytes : this.#maxBytes);
    };
    return {
      hasRoom: (bytes) => fits(bytes, bytes),
      grow: (bytes, expected = 0) => {
        if (!fits(bytes, expected)) return false;
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
  /** Whether the budget has room for so many more bytes now. Takes nothing. */
  hasRoom(bytes: number): boolean;
  /** @param expected announced length: large bodies count as such at once @returns false without room */
  grow(bytes: number, expected?: number): boolean;
  /** Gives everything back. */
  release(): void;
}
