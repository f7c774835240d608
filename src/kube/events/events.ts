/**
 * Events for people, as `kubectl describe` shows them: aggregated (the same event about the same object is counted up,
 * many similar ones become one), limited in number per object, and written behind the caller's back. An event that cannot
 * be written is counted and forgotten: no work ever waits for one.
 *
 * Rules: client-go tools/record (EventCorrelator, spam filter: burst 25, one more every 5 minutes per object). Kept as
 * core/v1 Events, because those are what is shown with a count.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Clock } from '../../async/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { scrub } from '../../telemetry/scrub.ts';
import type { KubeClient } from '../api/client.ts';
import { KubeError } from '../api/errors.ts';
import { createCorrelation, createRecent } from './correlation.ts';
import { createRateLimiter } from '../../async/rate-limiter.ts';
import { eventCounter } from '../metrics.ts';
import { wait } from '../../async/wait.ts';
import { paths } from '../api/paths.ts';

/** What an event is about. */
export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent for what belongs to no namespace; its events are written to `default`. */
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

export interface EventText {
  readonly type: 'Normal' | 'Warning';
  /** UpperCamelCase, one of a closed list. */
  readonly reason: string;
  /** One sentence for the person who looks; at most 1,024 bytes are kept. Never a secret. */
  readonly message: string;
}

export interface EventRecorder {
  /** Never waits and never throws. */
  record(about: ObjectReference, event: EventText): void;
  /**
   * Resolves when all that was recorded is written or given up; for the end of the program and for tests. When the signal
   * aborts, what is not written is given up.
   */
  flush(signal: AbortSignal): Promise<void>;
}

export interface EventRecorderOptions {
  readonly client: KubeClient;
  /** Whose events these are; `archwright-controller` by default. */
  readonly component?: string;
  /** Which of its replicas; by default the host name, which is the pod's name. */
  readonly instance?: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: Metrics;
  /** Waits; injected by tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** The API server refuses longer ones. */
const maxMessageBytes = 1024;
/** All events together: a cluster that is in trouble must not be written full of explanations. */
const rate = { perSecond: 10, burst: 100 };
/** Waiting events; what comes beyond is dropped. */
const maxWaiting = 1000;
/** Written at the same time: one that has to wait for a second try keeps no others from being written. */
const maxLanes = 4;
/** Events that can still be counted up. */
const remembered = 4096;
const tries = { most: 4, firstPauseMs: 1_000, mostPauseMs: 30_000 };

/** One event that is to be written, or counted up. */
interface Waiting {
  readonly about: ObjectReference;
  readonly event: EventText;
  /** How often it happened since it was last written. */
  readonly times: number;
  readonly firstAt: number;
  readonly lastAt: number;
}

/** An event that was written. */
interface Written {
  readonly path: string;
  readonly count: number;
}

/** Makes a recorder. It asks nothing until there is something to write. */
export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  const { client, clock, log, sleep = wait } = options;
  const component = options.component ?? 'archwright-controller';
  const instance = (options.instance ?? hostname()).slice(0, 128);
  const correlation = createCorrelation();
  const written = createRecent<Written>(remembered);
  const waiting = new Map<string, Waiting>();
  const limiter = createRateLimiter({ ...rate, clock, sleep });
  const count = eventCounter(options.metrics);
  let giveUp = new AbortController();
  const lanes = new Set<Promise<void>>();
  /** Keys that are being written: what comes of them meanwhile waits, and is counted up on them. */
  const busy = new Set<string>();

  function record(about: ObjectReference, event: EventText): void {
    const correlated = correlation.correlate(about, event, clock.monotonic());
    if (correlated === undefined) {
      count('limited');
      return;
    }
    const { key, message } = correlated;
    const now = client.serverNow();
    const known = waiting.get(key);
    if (known === undefined && waiting.size >= maxWaiting) {
      count('dropped');
      return;
    }
    const text = { ...event, message: shortened(scrub(message)) };
    const since = known === undefined ? { times: 0, firstAt: now } : known;
    waiting.set(key, { about, event: text, times: since.times + 1, firstAt: since.firstAt, lastAt: now });
    if (lanes.size === maxLanes) return;
    const lane = write(giveUp.signal).finally(() => lanes.delete(lane));
    lanes.add(lane);
  }

  function nextFree(): readonly [string, Waiting] | undefined {
    for (const entry of waiting) if (!busy.has(entry[0])) return entry;
    return undefined;
  }

  /** Writes what is waiting, in its order, until nothing is that no other lane writes. */
  async function write(signal: AbortSignal): Promise<void> {
    // What is recorded in the same turn is counted together.
    await Promise.resolve();
    for (let entry = nextFree(); entry !== undefined; entry = nextFree()) {
      const [key, event] = entry;
      waiting.delete(key);
      busy.add(key);
      try {
        await writeInTime(key, event, signal);
      } catch (error) {
        count('failed');
        const { reason } = event.event;
        log.debug(
          { reason, error: error instanceof Error ? error.message : String(error) },
          'an event is lost',
        );
      } finally {
        busy.delete(key);
      }
    }
  }

  async function writeInTime(key: string, event: Waiting, signal: AbortSignal): Promise<void> {
    // One name for all tries: one that was carried out and whose answer was lost is found again.
    const name = eventName(event.about.name);
    for (let attempt = 1; ; attempt++) {
      await limiter.take(signal);
      try {
        await writeOnce(key, event, name, signal);
        return;
      } catch (error) {
        if (!(error instanceof KubeError) || !error.temporary || attempt >= tries.most) throw error;
        const pause = tries.firstPauseMs * 2 ** (attempt - 1);
        await sleep(Math.min(Math.max(pause, error.retryAfterMs ?? 0), tries.mostPauseMs), signal);
      }
    }
  }

  async function writeOnce(key: string, waiting: Waiting, name: string, signal: AbortSignal): Promise<void> {
    const known = written.get(key);
    if (known !== undefined) {
      const total = known.count + waiting.times;
      const { message } = waiting.event;
      const body = { count: total, lastTimestamp: timeText(waiting.lastAt), message };
      try {
        await client.patch(known.path, { type: 'merge', body }, { signal });
        written.set(key, { path: known.path, count: total });
        count('counted');
        return;
      } catch (error) {
        // Events live for an hour; after that the next one is a new one.
        if (!(error instanceof KubeError) || error.code !== 'not-found') throw error;
        written.delete(key);
      }
    }
    await create(key, waiting, name, signal);
  }

  async function create(key: string, waiting: Waiting, name: string, signal: AbortSignal): Promise<void> {
    const { about, event, times, firstAt, lastAt } = waiting;
    const namespace = about.namespace ?? 'default';
    const { apiVersion, kind, uid, resourceVersion } = about;
    const body = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace },
      involvedObject: {
        apiVersion,
        kind,
        namespace: about.namespace,
        name: about.name,
        uid,
        resourceVersion,
      },
      reason: event.reason,
      message: event.message,
      type: event.type,
      source: { component },
      reportingComponent: component,
      reportingInstance: instance,
      firstTimestamp: timeText(firstAt),
      lastTimestamp: timeText(lastAt),
      count: times,
    };
    await client.create(paths.events(namespace), body, { signal }).catch((error: unknown) => {
      if (!(error instanceof KubeError) || error.code !== 'conflict') throw error;
    });
    written.set(key, { path: paths.events(namespace, name), count: times });
    count('written');
  }

  return {
    record: (about, event) => {
      try {
        record(about, event);
      } catch (error) {
        log.error({ err: error }, 'an event cannot be recorded');
      }
    },
    flush: async (signal) => {
      const stop = (): void => {
        for (let left = waiting.size; left > 0; left--) count('dropped');
        waiting.clear();
        giveUp.abort(signal.reason);
        giveUp = new AbortController();
      };
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop, { once: true });
      while (lanes.size > 0) await Promise.all(lanes);
      signal.removeEventListener('abort', stop);
    },
  };
}

/** Unique, and a DNS subdomain whatever the object's name is. */
function eventName(name: string): string {
  const start = name.replaceAll(/[^a-z0-9.-]/g, '-').slice(0, 200);
  return `${start.replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '') || 'event'}.${randomBytes(8).toString('hex')}`;
}

function timeText(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** Cuts at a character, never in the middle of one. */
function shortened(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxMessageBytes) return text;
  const cut = bytes.subarray(0, maxMessageBytes - Buffer.byteLength('…')).toString('utf8');
  return `${cut.replace(/\uFFFD+$/, '')}…`;
}
