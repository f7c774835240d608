/**
 * The API server's wall clock, from the `Date` headers of its answers. A header has whole seconds, so each
 * one bounds the difference to our monotonic clock from both sides. Each answer narrows the bounds. They
 * start anew if an answer contradicts them: the server's clock was set, or another replica answered.
 */
import type { Clock } from '../../async/clock.ts';

/** `Date` headers have no fraction of a second. */
const secondMs = 1_000;

export class ServerClock {
  readonly #clock: Clock;
  /** Least and most that the server's clock is ahead of the monotonic one. */
  #bounds: { readonly least: number; readonly most: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param sentAt monotonic time when the request was sent */
  answered(date: string | undefined, sentAt: number): void {
    const at = date === undefined ? Number.NaN : Date.parse(date);
    if (Number.isNaN(at)) return;
    // The header was written after the request was sent and before its answer came.
    const seen = { least: at - this.#clock.monotonic(), most: at + secondMs - sentAt };
    const least = Math.max(this.#bounds?.least ?? seen.least, seen.least);
    const most = Math.min(this.#bounds?.most ?? seen.most, seen.most);
    this.#bounds = least <= most ? { least, most } : seen;
  }

  /** Milliseconds since 1970, at most a second behind the server; the local clock before the first answer. */
  now(): number {
    return this.#bounds ? this.#bounds.least + this.#clock.monotonic() : this.#clock.now();
  }
}
