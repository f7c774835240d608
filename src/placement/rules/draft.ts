/** The architectures of a pod and why, before preferences, tolerations, node labels and excluded nodes. */
import type { Outcome, Reason } from '../decision.ts';

export interface Draft {
  readonly outcome: Outcome;
  readonly required: readonly string[] | undefined;
  /** Architectures whose taints are tolerated. Default: the required ones. */
  readonly tolerated?: readonly string[];
  readonly gate?: boolean;
  readonly message?: string;
  readonly warnings: readonly string[];
  readonly reasons: readonly Reason[];
}
