/**
 * Follows the Lease of an election from outside. There is a leader while the Lease has a holder and changes
 * within its duration, by our own clock. A watch that is broken for longer than the duration counts as no
 * leader: work that depends on a leader must not wait for one that may have gone.
 */
import type { Metrics } from '../../telemetry/metrics.ts';
import { paths } from '../api/paths.ts';
import { usualIdleMs, watchNamed, type NamedObject } from '../watch/reflector.ts';
import { recordOf, sameRecord, type LeaseRecord } from './lease-lock.ts';

/** A leader renews every few seconds: after this silence the watch is dead, or there is no leader. */
const renewedIdleMs = 30_000;

export function watchLeader(options: NamedObject & { readonly metrics?: Metrics }) {
  const { namespace, name, clock, log } = options;
  let seen: { readonly record: LeaseRecord; readonly at: number } | undefined;
  let logged: string | undefined;
  let cancelTimer = (): void => undefined;

  function holder(): string | undefined {
    if (seen === undefined || seen.record.holder === '') return undefined;
    return clock.monotonic() < seen.at + seen.record.durationMs ? seen.record.holder : undefined;
  }

  function logChange(): void {
    const now = holder();
    if (now === logged) return;
    logged = now;
    const message = now === undefined ? 'no replica leads' : 'a replica leads';
    log.info({ lease: name, holder: now ?? null }, message);
  }

  /** Checks at the expiry, and again if the timer fired early: Node's timers do, by part of a millisecond. */
  function awaitExpiry(): void {
    cancelTimer();
    if (seen === undefined) return;
    const leftMs = seen.at + seen.record.durationMs - clock.monotonic();
    if (leftMs <= 0) logChange();
    else cancelTimer = clock.timer(Math.max(1, leftMs), awaitExpiry);
  }

  const reflector = watchNamed<LeaseRecord>({
    ...options,
    path: paths.leases(namespace),
    // Without the right to read Leases, nobody is known to lead.
    isOptional: true,
    trim: recordOf,
    idleMs: () => (holder() === undefined ? usualIdleMs : renewedIdleMs),
  });
  reflector.onEach(({ object }) => {
    if (object === undefined) {
      seen = undefined;
      cancelTimer();
    } else if (seen === undefined || !sameRecord(seen.record, object)) {
      seen = { record: object, at: clock.monotonic() };
      awaitExpiry();
    }
    logChange();
  });

  return {
    /** Whether there is a leader, as far as this process sees. */
    leads: () => holder() !== undefined,
    holder,
    ready: (signal: AbortSignal) => reflector.ready(signal),
    close: () => {
      cancelTimer();
      reflector.stop();
    },
  };
}
