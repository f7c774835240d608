/** Troubles that last: each is reported when it begins, and again from time to time. */
import type { Clock } from '../../async/clock.ts';

/** The API server forgets events after an hour. */
export const repeatMs = 30 * 60_000;

export class Repeats {
  readonly #clock: Clock;
  #reportedAt = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Of all troubles now, by id, those that are to be reported now. Forgets all others. */
  due<T>(troubles: Iterable<readonly [id: string, trouble: T]>): readonly T[] {
    const now = this.#clock.monotonic();
    const current = new Map<string, number>();
    const due: T[] = [];
    for (const [id, trouble] of troubles) {
      const last = current.get(id) ?? this.#reportedAt.get(id);
      const isDue = last === undefined || now - last >= repeatMs;
      current.set(id, isDue ? now : last);
      if (isDue) due.push(trouble);
    }
    this.#reportedAt = current;
    return due;
  }
}
