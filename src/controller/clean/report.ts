/** What `archwright clean` found and did, step by step. */

export interface Failure {
  /** Kind, namespace and name. */
  readonly what: string;
  readonly why: string;
}

export interface StepReport {
  readonly step: string;
  /** Objects that were changed or removed; in a dry run those that would have been. */
  readonly done: number;
  readonly failures: readonly Failure[];
  /** What else the user should know. */
  readonly notes: readonly string[];
}

export interface CleanReport {
  readonly dryRun: boolean;
  /** Whether nothing is left. */
  readonly complete: boolean;
  readonly steps: readonly StepReport[];
}

interface Tally {
  done: number;
  /** Why the step failed as a whole when it last ran. */
  broken: Failure | undefined;
  readonly failures: Failure[];
  readonly notes: string[];
}

/** Between two progress lines of one step. */
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
    let tally = this.#tallies.get(step);
    if (!tally) this.#tallies.set(step, (tally = { done: 0, broken: undefined, failures: [], notes: [] }));
    return tally;
  }

  /** An object was changed, or would be. It may have failed before. */
  done(step: string, what: string): void {
    const tally = this.#of(step);
    if (this.#dryRun) this.#progress(`would change ${what}`);
    remove(tally.failures, (failure) => failure.what === what);
    tally.done += 1;
    if (tally.done % progressEvery === 0) this.#progress(`${step}: ${tally.done} done`);
  }

  /** A step that runs again fails for the same objects again: each is reported once. */
  fail(step: string, what: string, why: string): Failure {
    const { failures } = this.#of(step);
    const known = failures.find((each) => each.what === what);
    if (known) return known;
    const failure = { what, why };
    failures.push(failure);
    this.#progress(`${step}: ${what}: ${why}`);
    return failure;
  }

  /** The step failed as a whole. */
  break(step: string, what: string, why: string): void {
    this.#of(step).broken = this.fail(step, what, why);
  }

  /** The step ran to its end. @param before how many objects were done before it ran */
  ended(step: string, before: number): void {
    const { done, failures, broken } = this.#of(step);
    remove(failures, (failure) => failure === broken);
    if (done > before) this.#progress(`${step}: ${done} ${this.#dryRun ? 'would be changed' : 'done'}`);
  }

  note(step: string, text: string): void {
    const { notes } = this.#of(step);
    if (!notes.includes(text)) notes.push(text);
  }

  countOf(step: string): number {
    return this.#of(step).done;
  }

  hasFailed(step: string): boolean {
    return this.#of(step).failures.length > 0;
  }

  report(): CleanReport {
    const steps = [...this.#tallies].map(([step, { done, failures, notes }]) => ({
      step,
      done,
      failures,
      notes,
    }));
    const complete = steps.every(({ failures }) => failures.length === 0);
    return { dryRun: this.#dryRun, complete, steps };
  }
}

function remove<T>(list: T[], isIt: (item: T) => boolean): void {
  const index = list.findIndex(isIt);
  if (index >= 0) list.splice(index, 1);
}
