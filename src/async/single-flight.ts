/**
 * Single flight: callers that need the same work at the same time share one run. A caller that stops waiting does
 * not fail the others.
 */
import { unlessAborted } from './wait.ts';

interface Run<Result> {
  readonly result: Promise<Result>;
  readonly controller: AbortController;
  callers: number;
  abandoned: boolean;
}

export class SingleFlight<Result> {
  readonly #runs = new Map<string, Run<Result>>();
  #closed: Error | undefined;

  /**
   * Joins the run of this key, or starts it.
   * @param work its signal aborts on `close`, and when the last caller stops waiting. Until it ends, new callers
   *   join it; if it fails then, they start another
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
    run.callers += 1;
    try {
      return await (signal === undefined ? run.result : unlessAborted(run.result, signal));
    } catch (error) {
      // The run failed because its earlier callers left.
      if (abandoned && signal?.aborted !== true) return await this.run(key, work, signal);
      throw error;
    } finally {
      run.callers -= 1;
      if (run.callers === 0 && this.#runs.get(key) === run) {
        run.abandoned = true;
        run.controller.abort();
      }
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
    const controller = new AbortController();
    if (this.#closed) controller.abort(this.#closed);
    const { promise: result, resolve } = Promise.withResolvers<Result>();
    const run = { result, controller, callers: 0, abandoned: false };
    this.#runs.set(key, run);
    resolve((async () => await work(controller.signal))().finally(() => this.#runs.delete(key)));
    return run;
  }
}
