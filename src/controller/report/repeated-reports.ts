/** Problems that last: each is reported when it begins, and again from time to time. */
import type { Clock } from '../../async/clock.ts';

/** The API server forgets events after an hour. */
export const repeatMs = 30 * 60_000;

export class RepeatedReports {
  readonly #clock: Clock;
  #reportedAt = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Which of the current problems are due for a report. Forgets problems that are not among them. */
  due<T>(problems: Iterable<readonly [id: string, problem: T]>): readonly T[] {
    const now = this.#clock.monotonic();
    const current = new Map<string, number>();
    const due: T[] = [];
    for (const [id, problem] of problems) {
      const last = current.get(id) ?? this.#reportedAt.get(id);
      const isDue = last === undefined || now - last >= repeatMs;
      current.set(id, isDue ? now : last);
      if (isDue) due.push(problem);
    }
    this.#reportedAt = current;
    return due;
  }
}
