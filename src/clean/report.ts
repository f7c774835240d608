/** The report of `archwright clean`, step by step. */

export type Action = 'change' | 'delete' | 'restart';

export interface CleanReport {
  readonly dryRun: boolean;
  /** Whether nothing is left. */
  readonly complete: boolean;
  readonly steps: readonly {
    readonly step: string;
    /** Objects that were changed or removed; in a dry run those that would have been. */
    readonly done: number;
    /** `what`: kind, namespace and name. */
    readonly failures: readonly { readonly what: string; readonly why: string }[];
    /** More for the user. */
    readonly notes: readonly string[];
  }[];
}

const progressEvery = 500;

/** Counts for each step; steps of the same name are one step. */
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

  /** An object was changed, or would be. It may have failed before. */
  done(step: string, what: string, action: Action): void {
    const tally = this.#of(step);
    if (this.#dryRun) this.#progress(`would ${action} ${what}`);
    tally.failures.delete(what);
    tally.done += 1;
    if (tally.done % progressEvery === 0) this.#progress(`${step}: ${tally.done} done`);
  }

  /** Only for the report: the step may run again, and succeed then. */
  fail(step: string, what: string, why: string): void {
    this.#of(step).failures.set(what, why);
  }

  /** The step failed as a whole, until it runs to its end. */
  break(step: string, where: string, why: string): void {
    this.fail(step, where, why);
    this.#of(step).brokenAt = where;
  }

  /** The step ran to its end. @param before how many objects were done before it ran */
  ended(step: string, before: number): void {
    const { done, failures, brokenAt } = this.#of(step);
    failures.delete(brokenAt);
    if (done > before) this.#progress(`${step}: ${done} ${this.#dryRun ? 'would be done' : 'done'}`);
  }

  note(step: string, text: string): void {
    this.#of(step).notes.add(text);
  }

  countOf(step: string): number {
    return this.#of(step).done;
  }

  hasFailed(step: string): boolean {
    return this.#of(step).failures.size > 0;
  }

  report(): CleanReport {
    const steps = [...this.#tallies].map(([step, { done, failures, notes }]) => {
      const failed = [...failures].map(([what, why]) => ({ what, why }));
      return { step, done, failures: failed, notes: [...notes] };
    });
    const complete = steps.every(({ failures }) => failures.length === 0);
    return { dryRun: this.#dryRun, complete, steps };
  }
}

/** `failures`: why, by kind, namespace and name of an object, or by the request that ended the step. */
function emptyTally() {
  return { done: 0, brokenAt: '', failures: new Map<string, string>(), notes: new Set<string>() };
}
