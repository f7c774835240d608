/** Exclusion of single nodes, by their label `kubernetes.io/hostname`. */
import type { Outcome, OwnFields, Reason } from '../../decision.ts';
import { maxExcludedNodes } from '../../pod/expressions.ts';

export interface Exclusion {
  /** Sorted. */
  readonly hostnames: readonly string[];
  readonly warnings: readonly string[];
  readonly reasons: readonly Reason[];
}

/** Outcomes with which no nodes are excluded. */
export const withoutExclusion: ReadonlySet<Outcome> = new Set(['denied', 'pending', 'gated']);

/** Every required term gets the list, and etcd refuses an object of more than 1.5 MiB. */
const maxWritten = 2 * maxExcludedNodes;

export function areTooMany({ length }: readonly string[], { terms }: OwnFields): boolean {
  return length > maxExcludedNodes || length * Math.max(1, terms?.length ?? 0) > maxWritten;
}

export const maxNamesBytes = 400;
