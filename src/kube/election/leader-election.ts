/**
 * Leader election by a Lease, as in client-go (tools/leaderelection). A candidate takes over when the record
 * is unchanged for the lease's duration by its own clock. A leader that cannot renew within the deadline
 * stops at once, and releases the Lease when it ends. `leader-watch.ts` follows from outside.
 */
import { limited } from '../../async/wait.ts';
import type { NamedObject } from '../watch/reflector.ts';
import { createLeaseLock, type LeaseLock, type LeaseLockOptions } from './lease-lock.ts';
import { messageOf } from '../../names/printable.ts';
import type { Log } from '../../telemetry/log.ts';

/** Each is longer than the next: otherwise a leader would go on while another one takes over. */
export interface LeaseTimes {
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
}

/** client-go's defaults. */
export const usualLeaseTimes: LeaseTimes = {
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 2000,
};

/** `name`: of the Lease. */
export interface LeaderElectionOptions extends NamedObject, Pick<LeaseLockOptions, 'onRecord' | 'mayCreate'> {
  /** Unique among all candidates and restarts of a pod: a candidate takes a Lease of its own name at once. */
  readonly identity: string;
  readonly times: LeaseTimes;
  /**
   * Works while this replica leads.
   * @param signal aborts when leadership is lost or the program ends; no writes after that
   * @param holds whether the Lease is still ours by the clock; for `fencedClient`
   * @param isOurs whether no other replica can lead yet. True also while this replica ends, for its last
   *   events before it releases the Lease. Stays false once the Lease is lost.
   */
  readonly lead: (signal: AbortSignal, holds: () => boolean, isOurs: () => boolean) => Promise<void>;
  /** Whether a candidate tries again after just the retry period. Default: no. */
  readonly isPrompt?: () => boolean;
  /** Ends everything; a Lease that is held is released after `lead` has ended. */
  readonly stop: AbortSignal;
}

/** Candidates wait up to 1 + this times the retry period, to avoid collisions (client-go: JitterFactor). */
const jitterFactor = 1.2;
/** Limit for the release at shutdown; after that, other replicas wait for the lease's duration. */
const releaseMs = 3_000;

/**
 * Takes part in the election until `stop` aborts: leads whenever it can, and after a loss is a candidate
 * again. Also ends if `lead` ends by itself. @throws errors of `lead`, after the release of the Lease
 */
export async function runElection(options: LeaderElectionOptions): Promise<void> {
  const { name, identity, times, lead, isPrompt, stop, clock, log } = options;
  const lock = createLeaseLock({ ...options, leaseDurationMs: times.leaseDurationMs });
  /** Whether the Lease may be ours although this replica does not lead: a lost answer, or no renewal. */
  let mayBeOurs = false;

  for (;;) {
    const term = await acquire();
    if (term === undefined) return;
    let isOver = true;
    try {
      isOver = (await leadFor(term)) || stop.aborted;
    } finally {
      if (isOver) await release();
      else mayBeOurs = true;
    }
    if (isOver) return;
  }

  /** @returns the term that begins; `undefined` if stopped before */
  async function acquire(): Promise<Term | undefined> {
    let lastHolder: string | undefined;
    while (!stop.aborted) {
      const term = new Term({ ...options, ...times, lock });
      try {
        if (await term.take(stop)) return term;
        mayBeOurs = false;
        if (lock.holder() !== lastHolder) {
          lastHolder = lock.holder();
          log.info({ lease: name, holder: lastHolder }, 'another replica leads');
        }
      } catch (error) {
        mayBeOurs = true;
        if (!stop.aborted) failed(error, 'cannot take the lease; trying again');
      }
      const jitter = isPrompt?.() ? 0 : clock.random() * jitterFactor;
      const pauseMs = times.retryPeriodMs * (1 + jitter);
      await clock.sleep(pauseMs, stop).catch(() => undefined);
    }
    if (mayBeOurs) await release();
    return undefined;
  }

  /** @returns whether `lead` ended by itself */
  async function leadFor(term: Term): Promise<boolean> {
    log.info({ lease: name, identity }, 'this replica leads');
    const keeping = term.keep();
    try {
      await lead(term.signal, term.holds, term.isOurs);
      return !term.signal.aborted;
    } catch (error) {
      if (!term.signal.aborted) throw error;
      failed(error, 'the work of a leader ended with an error after its leadership');
      return false;
    } finally {
      term.end();
      await keeping;
    }
  }

  async function release(): Promise<void> {
    try {
      const never = new AbortController().signal;
      const held = await limited(releaseMs, never, (signal) => lock.release(signal), clock.sleep);
      if (held) log.info({ lease: name }, 'the lease is released');
    } catch (error) {
      failed(error, 'the lease could not be released; other replicas wait for its end');
    }
  }

  function failed(error: unknown, message: string): void {
    log.warn({ lease: name, error: messageOf(error) }, message);
  }
}

interface TermOptions
  extends Omit<LeaseTimes, 'leaseDurationMs'>, Pick<LeaderElectionOptions, 'name' | 'stop' | 'clock'> {
  readonly lock: LeaseLock;
  readonly log: Pick<Log, 'warn'>;
}

/**
 * One term of a leader: from the request that took the Lease until it is lost.
 *
 * The deadline counts from when the last successful renewal was sent, so it ends before any other replica's
 * wait. A timer watches it, and the clock is checked before each use: a stopped process (SIGSTOP) may run
 * other work before its timers. A suspended machine stops the monotonic clock (clock_gettime(2),
 * CLOCK_MONOTONIC), so the wall clock also counts if it shows more time.
 */
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
    const isTaken = await limited(
      renewDeadlineMs / 2,
      signal,
      (within) => lock.tryAcquireOrRenew(within),
      clock.sleep,
    );
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

  /** Times of both clocks, milliseconds. */
  #now(): { readonly monotonic: number; readonly wall: number } {
    const { clock } = this.#options;
    return { monotonic: clock.monotonic(), wall: clock.now() };
  }

  #sinceRenewalMs(): number {
    const { clock } = this.#options;
    return Math.max(clock.monotonic() - this.#renewed.monotonic, clock.now() - this.#renewed.wall);
  }
}
