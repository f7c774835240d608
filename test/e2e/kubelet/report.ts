/** The report of the box: a line of JSON for each case. */
import type { Difference } from './compare.ts';
import type { PodCase } from './setup.ts';

/** A line of the report. */
export interface CaseReport {
  readonly setup: string;
  readonly name: string;
  readonly happened: Happened;
  readonly differences: readonly Difference[];
  /** The case itself, if there is an unintended difference. */
  readonly example?: PodCase;
}

/** Counts of the kubelet's side, which show that the comparison is not empty. */
export interface Happened {
  readonly pulled: number;
  readonly refused: number;
  /** Runs of plugins. */
  readonly runs: number;
  /** Images for which more than one user was presented. */
  readonly severalUsers: number;
}

export function report(line: CaseReport): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
