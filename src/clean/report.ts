/** The report of `archwright clean`, step by step. */

export type Action = 'change' | 'delete' | 'restart';

interface Failure {
  /** Kind, namespace and name. */
  readonly what: string;
  readonly why: string;
}

export interface CleanReport {
  readonly dryRun: boolean;
  /** Whether nothing is left. */
  readonly complete: boolean;
  readonly steps: readonly {
    readonly step: string;
    /** Objects that were changed or removed; in a dry run those that would have been. */
    readonly done: number;
    readonly failures: readonly Failure[];
    /** More for the user. */
    readonly notes: readonly string[];
  }[];
}

interface Tally {
  done: number;
  /** Why the step failed as a whole when it last ran. */
  broken: Failure | undefined;
  readonly failures: Map<string, Failure>;
  readonly notes: Set<string>;
}

const progressEvery = 500;

/** Counts for each step; steps of the same name are one step. */
export class Tallies {
  readonly #dryRun: boolean;
  readonly #progress: (line: string) => void;
  readonly #tallies = new Map<string, Tally>();

  constructor(dryRun: boolean, progress: (line: string) => void) {
    this.#dryRun = dryRun;
    this.#progress = progress;
  }

  #of(step: string): Tally {
    const tally = this.#tallies.get(step) ?? {
      done: 0,
      broken: undefined,
      failures: new Map<string, Failure>(),
      notes: new Set<string>(),
    };
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

  /**
   * Only for the report: the step may run again, and succeed then. If it fails for the same object again, that
   * is reported once.
   */
  fail(step: string, what: string, why: string): Failure {
    const { failures } = this.#of(step);
    const failure = failures.get(what) ?? { what, why };
    failures.set(what, failure);
    return failure;
  }

  break(step: string, what: string, why: string): void {
    this.#of(step).broken = this.fail(step, what, why);
  }

  /** The step ran to its end. @param before how many objects were done before it ran */
  ended(step: string, before: number): void {
    const { done, failures, broken } = this.#of(step);
    if (broken && failures.get(broken.what) === broken) failures.delete(broken.what);
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
      return { step, done, failures: [...failures.values()], notes: [...notes] };
    });
    const complete = steps.every(({ failures }) => failures.length === 0);
    return { dryRun: this.#dryRun, complete, steps };
  }
}
