/**
 * Follows the Lease of an election from outside. Somebody leads while the Lease has a holder and was seen to change within
 * its duration, by our own clock. So a watch that is broken for longer than that ends the belief as well: whoever depends
 * on a leader is told "nobody" rather than kept waiting.
 */
import type { Clock } from '../../async/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { KubeClient } from '../api/client.ts';
import { recordOf, sameRecord, type LeaseRecord } from './lease-record.ts';
import { startReflector, usualIdleMs } from '../watch/reflector.ts';
import { wait } from '../../async/wait.ts';
import { paths } from '../api/paths.ts';

export interface Leadership {
  /** Whether somebody leads, as far as can be seen: the Lease has a holder and was renewed within its duration. */
  leads(): boolean;
  /** Who; `undefined` where nobody does. */
  holder(): string | undefined;
  /** Resolves after the first look. */
  ready(signal: AbortSignal): Promise<void>;
  close(): void;
}

export interface WatchLeaderOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: Metrics;
  /** Waits; injected by tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** A leader renews every few seconds: a watch that is silent for this long is dead, or nobody leads any more. */
const renewedIdleMs = 30_000;

/** Starts watching. */
export function watchLeader(options: WatchLeaderOptions): Leadership {
  const { client, clock, log, sleep = wait } = options;
  const closing = new AbortController();
  let seen: { readonly record: LeaseRecord; readonly at: number } | undefined;
  let told: string | undefined;
  let timing = new AbortController();

  const reflector = startReflector<LeaseRecord>({
    client,
    path: paths.leases(options.namespace),
    fieldSelector: `metadata.name=${options.name}`,
    trim: recordOf,
    log,
    idleMs: () => (holder() === undefined ? usualIdleMs : renewedIdleMs),
    clock,
    sleep,
    ...(options.metrics && { metrics: options.metrics }),
  });

  function holder(): string | undefined {
    if (seen === undefined || seen.record.holder === '') return undefined;
    return clock.monotonic() < seen.at + seen.record.durationMs ? seen.record.holder : undefined;
  }

  function tell(): void {
    const now = holder();
    if (now === told) return;
    told = now;
    log.info(
      { lease: options.name, holder: now ?? null },
      now === undefined ? 'nobody leads' : 'a replica leads',
    );
  }

  /** Looks again when the belief ends, and once more where the timer was early, as Node's are by part of a millisecond. */
  function startTimer(): void {
    timing.abort();
    if (seen === undefined) return;
    const leftMs = seen.at + seen.record.durationMs - clock.monotonic();
    if (leftMs <= 0) return tell();
    timing = new AbortController();
    void sleep(Math.max(1, leftMs), timing.signal).then(startTimer, () => undefined);
  }

  reflector.onEach(({ object }) => {
    if (closing.signal.aborted) return;
    if (object === undefined) {
      seen = undefined;
      timing.abort();
    } else if (seen === undefined || !sameRecord(seen.record, object)) {
      seen = { record: object, at: clock.monotonic() };
      startTimer();
    }
    tell();
  });

  return {
    leads: () => holder() !== undefined,
    holder,
    ready: (signal) => reflector.ready(signal),
    close: () => {
      closing.abort();
      timing.abort();
      reflector.stop();
    },
  };
}
