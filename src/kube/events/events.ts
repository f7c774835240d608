/**
 * Records events as `kubectl describe` shows them: written in the background, by a work queue. An event that
 * cannot be written is counted and dropped; no work waits for it. Equal events are counted up on one object. An
 * object with many events loses those beyond a burst (client-go tools/record/events_cache.go,
 * EventSourceObjectSpamFilter and its defaults).
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { backOffMs, type Clock } from '../../async/clock.ts';
import { BoundedMap } from '../../async/bounded-map.ts';
import { createRateLimiter, RateLimiters, type RateLimiter } from '../../async/rate-limiter.ts';
import { unlessAborted } from '../../async/wait.ts';
import { messageOf } from '../../names/printable.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { scrub } from '../../telemetry/scrub.ts';
import type { KubeClient } from '../api/client.ts';
import { ignoring, KubeError } from '../api/errors.ts';
import { paths } from '../api/paths.ts';
import { eventCounter, type EventOutcome } from '../metrics.ts';
import { WorkQueue } from '../queue.ts';

export interface EventRecorderOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: Metrics;
}

/** The rate of all events together: explanations must not flood a cluster in trouble. */
const rate = { perSecond: 10, burst: 100 };
const maxPending = 1000;
/** Concurrent writes: a retry of one event does not block the others. */
const workers = 4;
/** The burst for one object: then one every five minutes. */
const ofObject = { burst: 25, perSecond: 1 / 300 };
/** Remembered objects and events; client-go's size of each cache. */
const remembered = 4096;
const maxTries = 4;
const backOff = { firstMs: 1_000, mostMs: 30_000 };

/** The API server refuses longer messages. */
const maxMessageBytes = 1024;
/** Who writes the events. */
const component = 'archwright-controller';
/** The host name is the pod's name. */
const instance = hostname().slice(0, 128);

/** Sends nothing before the first event. */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #limiter: RateLimiter;
  readonly #ofObjects: RateLimiters;
  readonly #count: (outcome: EventOutcome) => void;
  readonly #written = new BoundedMap<string, { readonly path: string; readonly count: number }>(remembered);
  /** Keys: those of the queue. Events with the same key are counted up on one object. */
  readonly #pending = new Map<string, PendingEvent>();
  readonly #queue: WorkQueue;

  constructor(options: EventRecorderOptions) {
    const { clock, log, metrics } = options;
    this.#options = options;
    this.#limiter = createRateLimiter({ ...rate, clock });
    this.#ofObjects = new RateLimiters({ ...ofObject, clock }, remembered);
    this.#count = eventCounter(metrics);
    this.#queue = new WorkQueue({ work: (key, signal) => this.#work(key, signal), workers, clock, log });
    this.#queue.start();
  }

  /** Never waits and never throws. */
  record(about: ObjectReference, event: EventText): void {
    try {
      this.#add(about, event);
    } catch (error) {
      this.#options.log.error({ err: error }, 'an event cannot be recorded');
    }
  }

  /** Resolves when all events are written. An abort of the signal drops the unwritten ones, and ends it. */
  async flush(signal: AbortSignal): Promise<void> {
    try {
      await unlessAborted(this.#queue.idle(), signal);
    } catch {
      await this.#queue.stop();
      for (let left = this.#pending.size; left > 0; left--) this.#count('dropped');
      this.#pending.clear();
    }
  }

  #add(about: ObjectReference, event: EventText): void {
    const { apiVersion, kind, namespace = '', name, uid = '' } = about;
    // The queue takes what is before a slash for a namespace: here, an object.
    const object = JSON.stringify([namespace, name, kind, uid, apiVersion]);
    if (this.#ofObjects.get(object).takeOrDelayMs() > 0) return this.#count('limited');
    const key = `${object}/${event.type} ${event.reason} ${event.message}`;
    const now = this.#options.client.serverNow();
    const known = this.#pending.get(key);
    if (known === undefined && this.#pending.size >= maxPending) return this.#count('dropped');
    const { times, firstAt } = known ?? { times: 0, firstAt: now };
    const text = { ...event, message: shortened(scrub(event.message)) };
    this.#pending.set(key, { about, event: text, times: times + 1, firstAt, lastAt: now });
    this.#queue.add(key);
  }

  async #work(key: string, signal: AbortSignal): Promise<void> {
    // Events of the same turn are counted together.
    await Promise.resolve();
    const pending = this.#pending.get(key);
    if (pending === undefined) return;
    this.#pending.delete(key);
    try {
      await this.#write(key, pending, signal);
    } catch (error) {
      this.#count('failed');
      const { reason } = pending.event;
      this.#options.log.debug({ reason, error: messageOf(error) }, 'an event is lost');
    }
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
    const { about, event, times, firstAt, lastAt } = pending;
    const { namespace = 'default' } = about;
    const body = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace },
      involvedObject: about,
      ...event,
      source: { component },
      reportingComponent: component,
      reportingInstance: instance,
      firstTimestamp: timeText(firstAt),
      lastTimestamp: timeText(lastAt),
      count: times,
    };
    await ignoring('conflict', this.#options.client.create(paths.events(namespace), body, { signal }));
    this.#written.set(key, { path: paths.events(namespace, name), count: times });
    this.#count('written');
  }
}

export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent for an object without a namespace; its events are written to `default`. */
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly uid?: string | undefined;
}

export interface EventText {
  readonly type: 'Normal' | 'Warning';
  /** UpperCamelCase, one of a closed list. */
  readonly reason: string;
  /** One sentence for a person, at most 1,024 bytes. Never a secret. */
  readonly message: string;
}

/** An event to write or to count up: core/v1, because `kubectl describe` shows no counts of events.k8s.io. */
interface PendingEvent {
  readonly about: ObjectReference;
  readonly event: EventText;
  readonly times: number;
  readonly firstAt: number;
  readonly lastAt: number;
}

/** A new, unique name: a DNS subdomain whatever the object's name is. */
function eventName(name: string): string {
  const start = name.replaceAll(/[^a-z0-9.-]/g, '-').slice(0, 200);
  return `${start.replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '') || 'event'}.${randomBytes(8).toString('hex')}`;
}

/** RFC 3339 with whole seconds. */
export function timeText(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** Cuts a message at a whole character. */
export function shortened(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxMessageBytes) return text;
  const cut = bytes.subarray(0, maxMessageBytes - Buffer.byteLength('…')).toString('utf8');
  return `${cut.replace(/\uFFFD+$/, '')}…`;
}
