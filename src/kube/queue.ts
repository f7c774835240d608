/**
 * A work queue of keys, as client-go's `util/workqueue`. One worker at a time works on a key. A key added
 * during its work is worked on once more. A failed key comes back after a back-off. A key has at most one
 * time: an earlier time replaces a later one.
 *
 * Unlike in client-go, one namespace cannot use up the workers (`fair-semaphore.ts`): keys are
 * `namespace/name`. A key without a namespace counts by itself.
 */
import { FairQueue } from '../async/fair-queue.ts';
import { FairSemaphore, type Leave } from '../async/fair-semaphore.ts';
import { backOffMs, type BackOff, type Clock } from '../async/clock.ts';
import type { Log } from '../telemetry/log.ts';
import { KubeError } from './api/errors.ts';
import type { KubeObject } from './api/objects.ts';
import { messageOf } from '../names/printable.ts';

/** `requeueAfterMs`: work on the key again after this time, even without an event. */
export type WorkResult = { readonly requeueAfterMs?: number } | undefined | void;

export interface WorkQueueOptions {
  /** An error is logged, and the key comes back after the back-off. A success resets the back-off. */
  readonly work: (key: string, signal: AbortSignal) => Promise<WorkResult>;
  /** Number of keys in work at the same time. */
  readonly workers: number;
  readonly clock: Clock;
  readonly log: Log;
  /** Default: client-go's shape, 250 ms to 60 s. */
  readonly backOff?: BackOff | undefined;
  /**
   * Events wait for the end of a back-off. For work that causes events by its own writes, which would be a
   * busy loop. Default: as in client-go, an event acts at once.
   */
  readonly waitsForBackOff?: boolean | undefined;
}

const defaultBackOff: BackOff = { firstMs: 250, mostMs: 60_000 };
/** A temporary failure is a warning only when it repeats. */
const quietFailures = 3;

export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #backOff: BackOff;
  readonly #stopping = new AbortController();
  readonly #places: FairSemaphore;
  /** Keys in the order of their arrival, round robin over the namespaces. */
  readonly #ready = new FairQueue<string>();
  readonly #working = new Set<string>();
  /** Keys added during their work. */
  readonly #again = new Set<string>();
  readonly #later = new Map<
    string,
    { readonly at: number; readonly cancel: () => void; readonly isBackOff: boolean }
  >();
  readonly #failures = new Map<string, number>();
  readonly #whenIdle: (() => void)[] = [];
  #isStarted = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    this.#places = new FairSemaphore({ places: options.workers });
    this.#backOff = options.backOff ?? defaultBackOff;
  }

  start(): void {
    this.#isStarted = true;
    this.#next();
  }

  /** Adds a key now, or after a while. */
  add(key: string, afterMs = 0): void {
    const isQueued = this.#ready.has(namespaceOf(key), key) || this.#again.has(key);
    if (this.#stopping.signal.aborted || isQueued) return;
    if (this.#options.waitsForBackOff && this.#later.get(key)?.isBackOff) return;
    if (afterMs > 0) return this.#addLater(key, afterMs, false);
    this.#dropLater(key);
    if (this.#working.has(key)) this.#again.add(key);
    else this.#ready.add(namespaceOf(key), key);
    this.#next();
  }

  /** Resolves when no key is queued or in work. Keys that wait for their time do not count. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenIdle.push(resolve);
      this.#next();
    });
  }

  /** Takes no more keys, aborts the work under way, and resolves when that has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('stopped'));
    for (const { cancel } of this.#later.values()) cancel();
    for (const keys of [this.#later, this.#ready, this.#again, this.#failures]) keys.clear();
    await this.idle();
  }

  #addLater(key: string, ms: number, isBackOff: boolean): void {
    const { clock } = this.#options;
    const at = clock.monotonic() + ms;
    const known = this.#later.get(key);
    if (known !== undefined && known.at <= at) return;
    known?.cancel();
    const cancel = clock.timer(ms, () => {
      this.#later.delete(key);
      this.add(key);
    });
    this.#later.set(key, { at, cancel, isBackOff });
  }

  #next(): void {
    // Thousands of nodes, each its own namespace, are not searched when every worker is busy.
    while (this.#isStarted && this.#places.hasFree) {
      let leave: Leave | undefined;
      const key = this.#ready.take((namespace) => (leave = this.#places.tryEnter(namespace)) !== undefined);
      if (key === undefined || leave === undefined) break;
      this.#working.add(key);
      void this.#run(key, leave);
    }
    if (this.#ready.size > 0 || this.#working.size > 0) return;
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  async #run(key: string, leave: Leave): Promise<void> {
    const { signal } = this.#stopping;
    try {
      const result = await this.#options.work(key, signal);
      this.#working.delete(key);
      this.#failures.delete(key);
      if (this.#again.delete(key)) this.add(key);
      else if (result?.requeueAfterMs !== undefined) this.add(key, Math.max(1, result.requeueAfterMs));
    } catch (error) {
      this.#working.delete(key);
      const isAgain = this.#again.delete(key);
      if (!signal.aborted) this.#failed(key, error);
      if (isAgain) this.add(key);
    }
    leave();
    this.#next();
  }

  #failed(key: string, error: unknown): void {
    const { clock, log } = this.#options;
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    const isKube = error instanceof KubeError;
    const wantedMs = isKube ? Math.min(error.retryAfterMs ?? 0, this.#backOff.mostMs) : 0;
    const fields = { key, failures, error: messageOf(error) };
    const isTemporary = isKube && (error.temporary || error.code === 'conflict');
    if (isTemporary && failures <= quietFailures) log.debug(fields, 'reconcile failed; trying again');
    // Failures 1, 2, 4, 8 and so on: one key can fail hundreds of times.
    else if (Number.isInteger(Math.log2(failures))) log.warn(fields, 'reconcile failed; trying again');
    this.#dropLater(key);
    this.#addLater(key, Math.max(backOffMs(this.#backOff, failures, clock.random), wantedMs), true);
  }

  #dropLater(key: string): void {
    this.#later.get(key)?.cancel();
    this.#later.delete(key);
  }
}

export function keyOf({ metadata }: KubeObject): string {
  return `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`;
}

function namespaceOf(key: string): string {
  const [namespace = key] = key.split('/', 1);
  return namespace;
}
