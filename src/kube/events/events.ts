/**
 * Records events as `kubectl describe` shows them: correlated and limited per object (`correlation.ts`),
 * written in the background. An event that cannot be written is counted and dropped; no work waits for it.
 */
import { hostname } from 'node:os';
import { backOffMs } from '../../async/back-off.ts';
import { BoundedMap } from '../../async/bounded-map.ts';
import type { Clock } from '../../async/clock.ts';
import { createRateLimiter, type RateLimiter } from '../../async/rate-limiter.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { scrub } from '../../telemetry/scrub.ts';
import type { KubeClient } from '../api/client.ts';
import { ignoring, KubeError } from '../api/errors.ts';
import { paths } from '../api/paths.ts';
import { eventCounter, type EventOutcome } from '../metrics.ts';
import { Correlation } from './correlation.ts';
import {
  eventName,
  eventObject,
  namespaceOf,
  shortened,
  timeText,
  type EventText,
  type ObjectReference,
  type PendingEvent,
} from './event.ts';
import { messageOf } from '../../names/printable.ts';

export interface EventRecorderOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: Metrics;
}

/** For all events together: explanations must not flood a cluster in trouble. */
const rate = { perSecond: 10, burst: 100 };
const maxPending = 1000;
/** Concurrent writes: a retry of one event does not block the others. */
const maxLanes = 4;
const remembered = 4096;
const maxTries = 4;
const backOff = { firstMs: 1_000, mostMs: 30_000 };

/** The host name is the pod's name. */
const instance = hostname().slice(0, 128);

/** Sends nothing before the first event. */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #limiter: RateLimiter;
  readonly #correlation = new Correlation();
  readonly #count: (outcome: EventOutcome) => void;
  readonly #written = new BoundedMap<string, { readonly path: string; readonly count: number }>(remembered);
  /** In the order of their first occurrence, by correlation key. */
  readonly #pending = new Map<string, PendingEvent>();
  readonly #lanes = new Set<Promise<void>>();
  /** Keys of writes under way: their next occurrences wait, and are counted up on them. */
  readonly #busy = new Set<string>();
  #giveUp = new AbortController();

  constructor(options: EventRecorderOptions) {
    const { clock, metrics } = options;
    this.#options = options;
    this.#limiter = createRateLimiter({ ...rate, clock });
    this.#count = eventCounter(metrics);
  }

  /** Never waits and never throws. */
  record(about: ObjectReference, event: EventText): void {
    try {
      if (!this.#add(about, event) || this.#lanes.size === maxLanes) return;
      const lane = this.#writePending(this.#giveUp.signal).finally(() => this.#lanes.delete(lane));
      this.#lanes.add(lane);
    } catch (error) {
      this.#options.log.error({ err: error }, 'an event cannot be recorded');
    }
  }

  /** Resolves when all events are written or dropped. An abort of the signal drops the unwritten ones. */
  async flush(signal: AbortSignal): Promise<void> {
    const drop = (): void => {
      for (let left = this.#pending.size; left > 0; left--) this.#count('dropped');
      this.#pending.clear();
      this.#giveUp.abort(signal.reason);
      this.#giveUp = new AbortController();
    };
    if (signal.aborted) drop();
    else signal.addEventListener('abort', drop, { once: true });
    while (this.#lanes.size > 0) await Promise.all(this.#lanes);
    signal.removeEventListener('abort', drop);
  }

  /** @returns whether the event is pending now */
  #add(about: ObjectReference, event: EventText): boolean {
    const { client, clock } = this.#options;
    const correlated = this.#correlation.correlate(about, event, clock.monotonic());
    if (correlated === undefined) {
      this.#count('limited');
      return false;
    }
    const { key, message } = correlated;
    const now = client.serverNow();
    const known = this.#pending.get(key);
    if (known === undefined && this.#pending.size >= maxPending) {
      this.#count('dropped');
      return false;
    }
    const { times, firstAt } = known ?? { times: 0, firstAt: now };
    const text = { ...event, message: shortened(scrub(message)) };
    this.#pending.set(key, { about, event: text, times: times + 1, firstAt, lastAt: now });
    return true;
  }

  /** One lane: writes pending events in their order, until none is left outside the other lanes. */
  async #writePending(signal: AbortSignal): Promise<void> {
    // Events of the same turn are counted together.
    await Promise.resolve();
    for (let key = this.#nextKey(); key !== undefined; key = this.#nextKey()) {
      const pending = this.#pending.get(key);
      if (pending === undefined) continue;
      this.#pending.delete(key);
      this.#busy.add(key);
      try {
        await this.#write(key, pending, signal);
      } catch (error) {
        this.#count('failed');
        const { reason } = pending.event;
        this.#options.log.debug({ reason, error: messageOf(error) }, 'an event is lost');
      } finally {
        this.#busy.delete(key);
      }
    }
  }

  #nextKey(): string | undefined {
    for (const key of this.#pending.keys()) if (!this.#busy.has(key)) return key;
    return undefined;
  }

  async #write(key: string, pending: PendingEvent, signal: AbortSignal): Promise<void> {
    // One name for all tries: if the answer of a successful try is lost, the next try finds the event.
    const name = eventName(pending.about.name);
    for (let attempt = 1; ; attempt++) {
      await this.#limiter.take(signal);
      try {
        if (!(await this.#countUp(key, pending, signal))) await this.#create(key, pending, name, signal);
        return;
      } catch (error) {
        if (!(error instanceof KubeError) || !error.temporary || attempt >= maxTries) throw error;
        const pauseMs = Math.max(backOffMs(backOff, attempt), error.retryAfterMs ?? 0);
        await this.#options.clock.sleep(Math.min(pauseMs, backOff.mostMs), signal);
      }
    }
  }

  /** @returns false if there is no event to count up */
  async #countUp(key: string, pending: PendingEvent, signal: AbortSignal): Promise<boolean> {
    const known = this.#written.get(key);
    if (known === undefined) return false;
    const count = known.count + pending.times;
    const body = { count, lastTimestamp: timeText(pending.lastAt), message: pending.event.message };
    const patch = this.#options.client.patch<object>(known.path, { type: 'merge', body }, { signal });
    // The API server keeps events for an hour.
    if ((await ignoring('not-found', patch)) === undefined) {
      this.#written.delete(key);
      return false;
    }
    this.#written.set(key, { path: known.path, count });
    this.#count('counted');
    return true;
  }

  async #create(key: string, pending: PendingEvent, name: string, signal: AbortSignal): Promise<void> {
    const namespace = namespaceOf(pending.about);
    const body = eventObject(pending, name, instance);
    await ignoring('conflict', this.#options.client.create(paths.events(namespace), body, { signal }));
    this.#written.set(key, { path: paths.events(namespace, name), count: pending.times });
    this.#count('written');
  }
}
