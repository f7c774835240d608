/**
 * Single flight: work that many wait for is done once. A flight has a time limit of its own; who waits may leave earlier
 * without ending it, so that the next one finds its result.
 */
import type { Clock } from './clock.ts';

export interface SingleFlight<Result> {
  /** Joins the flight of this key, or starts one. Rejects as `run` rejects. */
  join(key: string, run: (signal: AbortSignal) => Promise<Result>): Promise<Result>;
  has(key: string): boolean;
  /** Aborts every flight with this reason and waits for their end. Later ones are aborted from their start. */
  close(reason: Error): Promise<void>;
  readonly size: number;
}

interface Flight<Result> {
  readonly result: Promise<Result>;
  readonly controller: AbortController;
}

/**
 * Makes an empty set of flights.
 * @param limitMs how long a flight may take before its signal aborts
 */
export function createSingleFlight<Result>(
  limitMs: number,
  startTimer: Clock['timer'],
): SingleFlight<Result> {
  const flights = new Map<string, Flight<Result>>();
  let closed: Error | undefined;

  function start(key: string, run: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const controller = new AbortController();
    if (closed) controller.abort(closed);
    const stopTimer = startTimer(limitMs, () => {
      controller.abort(new FlightTimeout(limitMs));
    });
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    flights.set(key, { result: promise, controller });
    void (async () => {
      try {
        resolve(await run(controller.signal));
      } catch (error) {
        reject(error);
      } finally {
        stopTimer();
        flights.delete(key);
      }
    })();
    return promise;
  }

  return {
    join: (key, run) => flights.get(key)?.result ?? start(key, run),
    has: (key) => flights.has(key),
    close: async (reason) => {
      closed = reason;
      const flying = [...flights.values()];
      for (const { controller } of flying) controller.abort(reason);
      await Promise.allSettled(flying.map(({ result }) => result));
    },
    get size() {
      return flights.size;
    },
  };
}

/** Why a flight's signal aborted. */
export class FlightTimeout extends Error {
  readonly code = 'timeout';
  readonly temporary = true;
  constructor(limitMs: number) {
    super(`not answered within ${limitMs / 1000} s`);
    this.name = 'FlightTimeout';
  }
}

/**
 * Waits for a result until a signal aborts; then rejects with the signal's reason, whatever becomes of the result.
 */
export function unlessAborted<Result>(result: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(signal.reason as Error);
    };
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    void result.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', abort);
    });
  });
}
