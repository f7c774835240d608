/**
 * One term of a leader: from the request that took the Lease until it is lost.
 *
 * The deadline counts from when the last successful renewal was sent, so it ends before any other replica's
 * wait. A timer watches it, and the clock is checked before each use: a stopped process (SIGSTOP) may run
 * other work before its timers. A suspended machine stops the monotonic clock (clock_gettime(2),
 * CLOCK_MONOTONIC), so the wall clock also counts if it shows more time.
 */
import type { Clock } from '../../async/clock.ts';
import { limited } from '../../async/wait.ts';
import type { Log } from '../../telemetry/log.ts';
import type { LeaseLock } from './lease-lock.ts';
import { messageOf } from '../../names/printable.ts';

export interface TermOptions {
  readonly lock: LeaseLock;
  readonly name: string;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  readonly stop: AbortSignal;
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn'>;
}

export class Term {
  readonly signal: AbortSignal;
  readonly #options: TermOptions;
  readonly #lost = new AbortController();
  readonly #ended = new AbortController();
  /** Aborts also when the leader's work has ended. */
  readonly #running: AbortSignal;
  /** When the last request that took or renewed the Lease was sent. */
  #renewed: { readonly monotonic: number; readonly wall: number };

  constructor(options: TermOptions) {
    this.#options = options;
    this.signal = AbortSignal.any([options.stop, this.#lost.signal]);
    this.#running = AbortSignal.any([this.signal, this.#ended.signal]);
    this.#renewed = this.#now();
  }

  /**
   * Takes or renews the Lease.
   * @returns false if another replica holds it
   * @throws KubeError if that is not known
   */
  async take(signal: AbortSignal): Promise<boolean> {
    const { lock, renewDeadlineMs, clock } = this.#options;
    const sent = this.#now();
    // A request that hangs must leave time for another.
    const isTaken = await limited(renewDeadlineMs / 2, signal, (within) => lock.tryTake(within), clock.sleep);
    // An answer after the deadline renews nothing.
    if (isTaken && this.holds()) this.#renewed = sent;
    return isTaken;
  }

  /** Whether no other replica can lead yet; deposes this one if the deadline is over. */
  readonly isOurs = (): boolean => {
    if (this.#sinceRenewalMs() >= this.#options.renewDeadlineMs) {
      this.#depose('leadership is lost: the lease could not be renewed in time');
    }
    return !this.#lost.signal.aborted;
  };

  readonly holds = (): boolean => this.isOurs() && !this.signal.aborted;

  /** Renews the Lease and watches the deadline until the term ends; never rejects. */
  async keep(): Promise<void> {
    await Promise.allSettled([this.#renew(), this.#watchDeadline()]);
  }

  end(): void {
    this.#ended.abort();
  }

  async #renew(): Promise<void> {
    const { name, retryPeriodMs, clock, log } = this.#options;
    while (!this.#running.aborted) {
      await clock.sleep(retryPeriodMs, this.#running);
      if (!this.holds()) return;
      try {
        if (!(await this.take(this.#running)))
          this.#depose('leadership is lost: another replica took the lease');
      } catch (error) {
        if (this.#running.aborted) return;
        log.warn({ lease: name, error: messageOf(error) }, 'cannot renew the lease; trying again');
      }
    }
  }

  async #watchDeadline(): Promise<void> {
    const { renewDeadlineMs, clock } = this.#options;
    while (this.holds() && !this.#running.aborted) {
      await clock.sleep(Math.max(1, renewDeadlineMs - this.#sinceRenewalMs()), this.#running);
    }
  }

  #depose(why: string): void {
    if (this.#lost.signal.aborted) return;
    const { name, lock, log } = this.#options;
    log.warn({ lease: name, holder: lock.holder() }, why);
    this.#lost.abort(new Error(why));
  }

  /** By both clocks, milliseconds. */
  #now(): { readonly monotonic: number; readonly wall: number } {
    const { clock } = this.#options;
    return { monotonic: clock.monotonic(), wall: clock.now() };
  }

  #sinceRenewalMs(): number {
    const { clock } = this.#options;
    return Math.max(clock.monotonic() - this.#renewed.monotonic, clock.now() - this.#renewed.wall);
  }
}
