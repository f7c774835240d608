/** What one rule of the main branch hands to `decide.ts`, which adds preferences, tolerations and node labels to it. */
import type { Outcome, Reason } from '../decision.ts';

export interface Draft {
  readonly outcome: Outcome;
  readonly required: readonly string[] | undefined;
  /** Architectures whose taints are tolerated; without it those that are required. */
  readonly tolerated?: readonly string[];
  readonly gate?: boolean;
  readonly message?: string;
  readonly warnings: readonly string[];
  readonly reasons: readonly Reason[];
}
