/** The report of `archwright clean`, step by step. */

export type CleanReport = ReturnType<Tallies['report']>;

const progressEvery = 500;

/** Counts for each step. A step may run several times. */
export class Tallies {
  readonly #dryRun: boolean;
  readonly #progress: (line: string) => void;
  readonly #tallies = new Map<string, ReturnType<typeof emptyTally>>();

  constructor(dryRun: boolean, progress: (line: string) => void) {
    this.#dryRun = dryRun;
    this.#progress = progress;
  }

  #of(step: string) {
    const tally = this.#tallies.get(step) ?? emptyTally();
    this.#tallies.set(step, tally);
    return tally;
  }

  /** A step runs: only failures of its last run count. @returns how many objects it did before */
  begin(step: string): number {
    const { failures, done } = this.#of(step);
    failures.clear();
    return done;
  }

  /** An object was changed, or would be. @param action verb and object */
  done(step: string, action: string): void {
    const tally = this.#of(step);
    if (this.#dryRun) this.#progress(`would ${action}`);
    tally.done += 1;
    if (tally.done % progressEvery === 0) this.#progress(`${step}: ${tally.done} done`);
  }

  fail(step: string, what: string, why: string): void {
    this.#of(step).failures.set(what, why);
  }

  /** The step ran to its end. @param before how many objects were done before it ran */
  ended(step: string, before: number): void {
    const { done } = this.#of(step);
    if (done > before) this.#progress(`${step}: ${done} ${this.#dryRun ? 'would be done' : 'done'}`);
  }

  note(step: string, text: string): void {
    this.#of(step).notes.add(text);
  }

  hasFailed(step: string): boolean {
    return this.#of(step).failures.size > 0;
  }

  report() {
    const steps = [...this.#tallies].map(([step, { done, failures, notes }]) => {
      const failed = [...failures].map(([what, why]) => ({ what, why }));
      return { step, done, failures: failed, notes: [...notes] };
    });
    /** Whether nothing is left. */
    const complete = steps.every(({ failures }) => failures.length === 0);
    return { dryRun: this.#dryRun, complete, steps };
  }
}

/**
 * `done`: objects that were changed or removed; in a dry run those that would have been. `failures`: why, by
 * kind, namespace and name of an object, or by the request that ended the step. `notes`: more for the user.
 */
function emptyTally() {
  return { done: 0, failures: new Map<string, string>(), notes: new Set<string>() };
}
