/**
 * A work queue of keys: each key is worked on by one worker at a time, a key added while it is worked on is worked on once
 * more, and a key whose work failed comes back after a pause that grows (client-go util/workqueue). One key has one time
 * only: an earlier time replaces a later one, so work that wants to look again later says so each time.
 */
import { systemClock, type Clock } from '../async/clock.ts';
import type { Log } from '../telemetry/log.ts';
import { KubeError } from './api/errors.ts';

export interface WorkQueue {
  /** Adds a key now, or after a while; an earlier time wins over a later one. */
  add(key: string, afterMs?: number): void;
  /** Forgets how often the key failed. */
  forget(key: string): void;
  /** Keys that are queued, worked on or waiting for their time. */
  readonly size: number;
  /** Resolves when nothing is queued (timers of later keys do not count) and nothing is worked on; for tests. */
  idle(): Promise<void>;
  /** Stops taking keys, aborts what is worked on and resolves when it has ended. */
  stop(): Promise<void>;
}

export interface WorkQueueOptions {
  /** Does what the key asks for. What it throws is logged and the key comes back; a success forgets earlier failures. */
  readonly work: (key: string, signal: AbortSignal) => Promise<void>;
  /** Keys worked on at the same time. */
  readonly workers: number;
  readonly log: Log;
  /** The pause doubles with each failure of the key, between these. By default client-go's shape: 250 ms to 60 s. */
  readonly backoff?: { readonly firstMs: number; readonly mostMs: number };
  readonly clock?: Clock;
  readonly startTimer?: Clock['timer'];
  readonly random?: () => number;
}

interface Later {
  readonly at: number;
  readonly cancel: () => void;
}

/** A failure that passes by itself is worth a line for people only when it goes on. */
const quietFailures = 3;

/** Makes a queue that works at once on what is added. */
export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  const { work, workers, log } = options;
  const { firstMs, mostMs } = options.backoff ?? { firstMs: 250, mostMs: 60_000 };
  const clock = options.clock ?? systemClock;
  const startTimer = options.startTimer ?? clock.timer;
  const random = options.random ?? Math.random;
  const stopping = new AbortController();
  /** In the order of their arrival. */
  const ready = new Set<string>();
  const working = new Set<string>();
  /** Added while they were worked on. */
  const again = new Set<string>();
  const later = new Map<string, Later>();
  const failures = new Map<string, number>();
  let waiting: (() => void)[] = [];

  function add(key: string, afterMs = 0): void {
    if (stopping.signal.aborted || ready.has(key) || again.has(key)) return;
    if (afterMs > 0) addLater(key, afterMs);
    else {
      dropLater(key);
      if (working.has(key)) again.add(key);
      else ready.add(key);
      next();
    }
  }

  function addLater(key: string, ms: number): void {
    const at = clock.monotonic() + ms;
    const known = later.get(key);
    if (known !== undefined && known.at <= at) return;
    known?.cancel();
    const cancel = startTimer(ms, () => {
      later.delete(key);
      add(key);
    });
    later.set(key, { at, cancel });
  }

  function dropLater(key: string): void {
    later.get(key)?.cancel();
    later.delete(key);
  }

  function next(): void {
    while (working.size < workers && !stopping.signal.aborted) {
      const [key] = ready;
      if (key === undefined) break;
      ready.delete(key);
      working.add(key);
      void run(key);
    }
    if (ready.size > 0 || working.size > 0) return;
    for (const resolve of waiting) resolve();
    waiting = [];
  }

  async function run(key: string): Promise<void> {
    let failed: unknown;
    let isDone = false;
    try {
      await work(key, stopping.signal);
      isDone = true;
    } catch (error) {
      failed = error;
    }
    working.delete(key);
    if (isDone) failures.delete(key);
    else if (!stopping.signal.aborted) comeBack(key, failed);
    if (again.delete(key)) add(key);
    next();
  }

  function comeBack(key: string, error: unknown): void {
    const count = failures.get(key) ?? 0;
    failures.set(key, count + 1);
    const delay = Math.min(mostMs, firstMs * 2 ** Math.min(count, 30)) * (0.5 + random() / 2);
    const asked = error instanceof KubeError ? Math.min(error.retryAfterMs ?? 0, mostMs) : 0;
    const passes = error instanceof KubeError && (error.temporary || error.code === 'conflict');
    const fields = {
      key,
      failures: count + 1,
      error: error instanceof Error ? error.message : String(error),
    };
    if (passes && count < quietFailures) log.debug(fields, 'work failed; trying again');
    // Not each of hundreds of failures of one key is news.
    else if (Number.isInteger(Math.log2(count + 1))) log.warn(fields, 'work failed; trying again');
    addLater(key, Math.max(delay, asked));
  }

  return {
    add,
    forget: (key) => {
      failures.delete(key);
    },
    get size() {
      const keys = new Set([...ready, ...working, ...later.keys()]);
      return keys.size;
    },
    idle: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        next();
      }),
    stop: async () => {
      stopping.abort(new Error('stopped'));
      for (const { cancel } of later.values()) cancel();
      later.clear();
      ready.clear();
      again.clear();
      failures.clear();
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        next();
      });
    },
  };
}
