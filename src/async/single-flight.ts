/**
 * Single flight: callers that need the same work at the same time share one run. A run may have a time limit
 * of its own; a caller that stops waiting does not fail the others.
 */
import type { Clock } from './clock.ts';
import { unlessAborted } from './wait.ts';

export interface SingleFlightOptions {
  /** Aborts a run that takes longer. Default: no limit. */
  readonly limit?: { readonly ms: number; readonly clock: Clock };
  /**
   * Aborts the signal of a run when its last caller stops waiting. Until the run ends, new callers join it;
   * if it fails, they start another. Default: it goes on, and the next caller finds its result.
   */
  readonly abortAbandoned?: boolean;
}

interface Run<Result> {
  readonly result: Promise<Result>;
  readonly controller: AbortController;
  callers: number;
  abandoned: boolean;
}

export class SingleFlight<Result> {
  readonly #runs = new Map<string, Run<Result>>();
  readonly #options: SingleFlightOptions;
  #closed: Error | undefined;

  constructor(options: SingleFlightOptions = {}) {
    this.#options = options;
  }

  /**
   * Joins the run of this key, or starts it.
   * @param work its signal aborts at the time limit (`RunTimeout`), on `close`, and with `abortAbandoned`
   * @param signal ends the waiting of this caller only
   * @throws what `work` throws, or the signal's reason
   */
  async run(
    key: string,
    work: (signal: AbortSignal) => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result> {
    signal?.throwIfAborted();
    const run = this.#runs.get(key) ?? this.#start(key, work);
    const { abandoned } = run;
    try {
      return await this.#wait(run, signal);
    } catch (error) {
      // The run failed because its earlier callers left.
      if (abandoned && signal?.aborted !== true) return this.run(key, work, signal);
      throw error;
    }
  }

  has(key: string): boolean {
    return this.#runs.has(key);
  }

  /** Aborts every run and waits for its end. Later runs start with an aborted signal. */
  async close(reason: Error): Promise<void> {
    this.#closed = reason;
    const runs = [...this.#runs.values()];
    for (const { controller } of runs) controller.abort(reason);
    await Promise.allSettled(runs.map(({ result }) => result));
  }

  #start(key: string, work: (signal: AbortSignal) => Promise<Result>): Run<Result> {
    const { limit } = this.#options;
    const controller = new AbortController();
    if (this.#closed) controller.abort(this.#closed);
    const { promise, resolve } = Promise.withResolvers<Result>();
    const run = { result: promise, controller, callers: 0, abandoned: false };
    this.#runs.set(key, run);
    const stopTimer = limit?.clock.timer(limit.ms, () => controller.abort(new RunTimeout(limit.ms)));
    const working = (async () => await work(controller.signal))().finally(() => {
      stopTimer?.();
      this.#runs.delete(key);
    });
    resolve(working);
    return run;
  }

  async #wait(run: Run<Result>, signal: AbortSignal | undefined): Promise<Result> {
    run.callers += 1;
    try {
      return await (signal === undefined ? run.result : unlessAborted(run.result, signal));
    } finally {
      run.callers -= 1;
      if (run.callers === 0 && this.#options.abortAbandoned === true) {
        run.abandoned = true;
        run.controller.abort();
      }
    }
  }
}

/** The reason of the signal of a run that reached its time limit. */
export class RunTimeout extends Error {
  constructor(limitMs: number) {
    super(`not answered within ${limitMs / 1000} s`);
    this.name = 'RunTimeout';
  }
}
