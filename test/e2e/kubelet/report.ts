/** What the box reports: a line of JSON for each case. */
import type { Difference } from './compare.ts';
import type { PodCase } from './setup.ts';

/** A line of the report. */
export interface CaseReport {
  readonly setup: string;
  readonly name: string;
  readonly happened: Happened;
  readonly differences: readonly Difference[];
  /** The case itself, where something differs that is not meant to. */
  readonly example?: PodCase;
}

/** How much of what can happen did, on the kubelet's side: a comparison of nothing proves nothing. */
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
