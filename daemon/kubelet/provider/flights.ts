/**
 * One run at a time for each key; whoever asks meanwhile gets its result too, the failed one included. A run that everybody stopped
 * waiting for is told so, and decides itself whether it goes on; until it ends, it can still be joined.
 */

export interface Flights<T> {
  /**
   * Joins the run of a key, or starts it.
   * @param signal ends the waiting of this caller only
   * @param start its signal aborts when nobody waits any more
   * @throws what the run throws, or the signal's reason
   */
  join(
    key: string,
    signal: AbortSignal | undefined,
    start: (abandoned: AbortSignal) => Promise<T>,
  ): Promise<T>;
}

interface Flight<T> {
  readonly result: Promise<T>;
  readonly abandon: AbortController;
  waiting: number;
}

export function createFlights<T>(): Flights<T> {
  const flights = new Map<string, Flight<T>>();

  function take(key: string, start: (abandoned: AbortSignal) => Promise<T>): Flight<T> {
    const running = flights.get(key);
    if (running !== undefined) return running;
    const abandon = new AbortController();
    const flight = { result: run(key, () => start(abandon.signal)), abandon, waiting: 0 };
    flights.set(key, flight);
    return flight;
  }

  async function run(key: string, start: () => Promise<T>): Promise<T> {
    try {
      return await start();
    } finally {
      flights.delete(key);
    }
  }

  return {
    async join(key, signal, start) {
      signal?.throwIfAborted();
      const flight = take(key, start);
      flight.waiting += 1;
      try {
        return await (signal === undefined ? flight.result : until(signal, flight.result));
      } finally {
        flight.waiting -= 1;
        if (flight.waiting === 0) flight.abandon.abort();
      }
    },
  };
}

async function until<T>(signal: AbortSignal, result: Promise<T>): Promise<T> {
  let abort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([result, aborted]);
  } finally {
    if (abort !== undefined) signal.removeEventListener('abort', abort);
  }
}
