/**
 * Leader election by a Lease, with client-go's semantics (tools/leaderelection): a candidate takes over when it has seen the
 * record unchanged for the lease's duration by its own clock; a leader that cannot renew within the renew deadline stops
 * leading at once; a leader that ends releases the Lease. `watchLeader` follows it from outside.
 *
 * The deadline counts from when the last renewal that succeeded was sent, so it ends before anybody else's wait for the
 * lease's duration can. It is checked by the clock before each use as well as by a timer: a process that was stopped
 * (SIGSTOP) runs other things before its timers. Of a machine that was suspended the monotonic clock stood still meanwhile
 * (clock_gettime(2), CLOCK_MONOTONIC), so the wall clock counts too where it says that more time has passed.
 */
import type { Clock } from '../../async/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import type { KubeClient } from '../api/client.ts';
import { createLeaseLock } from './lease-record.ts';
import { limited, wait } from '../../async/wait.ts';

export { watchLeader, type Leadership } from './leader-watch.ts';

export interface LeaseTimes {
  /** client-go's defaults: 15 s, 10 s, 2 s. */
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
}

export interface LeaderElectionOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
  /** Unique among all candidates, also among the lives of one pod: a candidate takes a Lease of its own name at once. */
  readonly identity: string;
  readonly times: LeaseTimes;
  /**
   * Works while this replica leads.
   * @param signal aborts when leadership is lost or the program ends; nothing may be written after it
   * @param holds whether the Lease is still ours by the clock; for `fencedClient`
   * @param isOurs whether nobody else can lead yet; true also while this replica ends, for what it has to say before it
   *   releases the Lease. Never true again once the Lease is lost.
   */
  readonly lead: (signal: AbortSignal, holds: () => boolean, isOurs: () => boolean) => Promise<void>;
  /** Ends everything; a Lease that is held is released after `lead` has ended. */
  readonly stop: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
  /** Waits; injected by tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random?: () => number;
}

/** By both clocks, milliseconds. */
interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

/** Candidates wait for up to 1 + this times the retry period, so that they do not meet (client-go: JitterFactor). */
const jitterFactor = 1.2;
/** The end of the program waits no longer than this for the release; others wait for the lease's duration then. */
const releaseMs = 3_000;

/**
 * Takes part in the election until `stop` aborts: leads whenever it can, and is a candidate again after it was deposed.
 * @throws what `lead` throws; the Lease is released before. Also ends where `lead` ends by itself.
 * @throws RangeError for times that do not shrink: a leader would go on while another one takes over
 */
export async function runLeaderElection(options: LeaderElectionOptions): Promise<void> {
  const { stop, clock, log, sleep = wait, random = Math.random } = options;
  const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = options.times;
  if (!(
    leaseDurationMs > renewDeadlineMs &&
    renewDeadlineMs > retryPeriodMs * jitterFactor &&
    retryPeriodMs > 0
  )) {
    throw new RangeError('lease times must shrink: duration > renew deadline > 1.2 × retry period > 0');
  }
  const lock = createLeaseLock({ ...options, leaseDurationMs });
  /** A request that hangs must leave time for another. */
  const requestMs = renewDeadlineMs / 2;
  /** Whether the Lease may be ours although this replica does not lead: an answer was lost, or nobody could renew it. */
  let mayBeOurs = false;

  function moment(): Moment {
    return { monotonic: clock.monotonic(), wall: clock.now() };
  }

  function sinceMs({ monotonic, wall }: Moment): number {
    return Math.max(clock.monotonic() - monotonic, clock.now() - wall);
  }

  function failed(error: unknown, message: string): void {
    log.warn({ lease: options.name, error: error instanceof Error ? error.message : String(error) }, message);
  }

  /** @returns when the request that took the Lease was sent; undefined when stopped before */
  async function acquire(): Promise<Moment | undefined> {
    let lastHolder: string | undefined;
    while (!stop.aborted) {
      const sent = moment();
      try {
        if (await limited(requestMs, stop, (signal) => lock.tryTake(signal), sleep)) return sent;
        mayBeOurs = false;
        if (lock.holder() !== lastHolder) {
          lastHolder = lock.holder();
          log.info({ lease: options.name, holder: lastHolder }, 'another replica leads');
        }
      } catch (error) {
        mayBeOurs = true;
        if (!stop.aborted) failed(error, 'cannot take the lease; trying again');
      }
      await sleep(retryPeriodMs * (1 + random() * jitterFactor), stop).catch(() => undefined);
    }
    if (mayBeOurs) await release();
    return undefined;
  }

  /** Leads until the Lease is lost, `stop` aborts, or `lead` ends; returns whether `lead` ended by itself. */
  async function leadFrom(firstSent: Moment): Promise<boolean> {
    let renewed = firstSent;
    const lost = new AbortController();
    const ended = new AbortController();
    const leading = AbortSignal.any([stop, lost.signal]);
    const running = AbortSignal.any([leading, ended.signal]);

    function depose(why: string): void {
      if (lost.signal.aborted) return;
      log.warn({ lease: options.name, holder: lock.holder() }, why);
      lost.abort(new Error(why));
    }

    function isOurs(): boolean {
      if (sinceMs(renewed) >= renewDeadlineMs) {
        depose('leadership is lost: the lease could not be renewed in time');
      }
      return !lost.signal.aborted;
    }

    function holds(): boolean {
      return isOurs() && !leading.aborted;
    }

    async function renew(): Promise<void> {
      while (!running.aborted) {
        await sleep(retryPeriodMs, running);
        if (!holds()) return;
        const sent = moment();
        try {
          const isOurs = await limited(requestMs, running, (signal) => lock.tryTake(signal), sleep);
          if (!isOurs) depose('leadership is lost: another replica took the lease');
          else if (holds()) renewed = sent;
        } catch (error) {
          if (!running.aborted) failed(error, 'cannot renew the lease; trying again');
        }
      }
    }

    async function watchDeadline(): Promise<void> {
      while (holds() && !running.aborted) {
        await sleep(Math.max(1, renewDeadlineMs - sinceMs(renewed)), running);
      }
    }

    log.info({ lease: options.name, identity: options.identity }, 'this replica leads');
    const background = [renew(), watchDeadline()].map((each) => each.catch(() => undefined));
    try {
      await options.lead(leading, holds, isOurs);
      return !leading.aborted;
    } catch (error) {
      if (!leading.aborted) throw error;
      failed(error, 'the work of a leader ended with an error after its leadership');
      return false;
    } finally {
      ended.abort();
      await Promise.all(background);
    }
  }

  async function release(): Promise<void> {
    try {
      const whatever = new AbortController().signal;
      const held = await limited(releaseMs, whatever, (signal) => lock.release(signal), sleep);
      if (held) log.info({ lease: options.name }, 'the lease is released');
    } catch (error) {
      failed(error, 'the lease could not be released; others wait for its end');
    }
  }

  for (;;) {
    const sent = await acquire();
    if (sent === undefined) return;
    let isOver = true;
    try {
      isOver = (await leadFrom(sent)) || stop.aborted;
    } finally {
      if (isOver) await release();
      else mayBeOurs = true;
    }
    if (isOver) return;
  }
}
