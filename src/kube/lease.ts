/**
 * Leader election by a Lease, with client-go's semantics (tools/leaderelection): a candidate takes over when it has seen the
 * record unchanged for the lease's duration by its own clock; a leader that cannot renew within the renew deadline stops
 * leading at once; a leader that ends releases the Lease. `watchLeader` follows it from outside.
 */

export interface Leadership {
  /** Whether somebody leads, as far as can be seen: the Lease has a holder and was renewed within its duration. */
  leads(): boolean;
  /** Who; `undefined` where nobody does. */
  holder(): string | undefined;
  onChange(listener: () => void): void;
  /** Resolves after the first look. */
  ready(signal: AbortSignal): Promise<void>;
  close(): void;
}

export interface LeaseTimes {
  /** client-go's defaults: 15 s, 10 s, 2 s. */
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
}
