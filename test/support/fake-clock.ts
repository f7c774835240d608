/** Clocks for tests: only the test advances the time. */
import { systemClock, type Clock } from '../../src/async/clock.ts';

export type FakeClock = ReturnType<typeof createFakeClock>;

interface Entry {
  readonly at: number;
  readonly run: () => void;
}

/** Wall clock and monotonic clock start at different values, so that mixing them up fails. */
const wallStart = Date.parse('2026-11-01T00:00:00Z');
const monotonicStart = 5_000_000;

/** A fake clock that starts on 2026-11-01. Default of `random`: 0.5. */
export function createFakeClock(random = (): number => 0.5) {
  let monotonic = monotonicStart;
  let wallOffset = wallStart - monotonicStart;
  const entries = new Set<Entry>();

  function timer(ms: number, run: () => void): () => void {
    const entry = { at: monotonic + ms, run };
    entries.add(entry);
    return () => entries.delete(entry);
  }

  async function runDue(): Promise<void> {
    await settle();
    const [first] = [...entries].filter((entry) => entry.at <= monotonic).sort((a, b) => a.at - b.at);
    if (first === undefined) return;
    entries.delete(first);
    first.run();
    await runDue();
  }

  return {
    now: (): number => monotonic + wallOffset,
    monotonic: (): number => monotonic,
    random,
    timer,
    sleep: (ms: number, signal: AbortSignal): Promise<void> =>
      new Promise((resolve, reject) => {
        const onAbort = (): void => {
          cancel();
          reject(signal.reason as Error);
        };
        const cancel = timer(ms, () => {
          signal.removeEventListener('abort', onAbort);
          resolve();
        });
        if (signal.aborted) onAbort();
        else signal.addEventListener('abort', onAbort, { once: true });
      }),
    /** Lets time pass. Timers that are due run in order, each at its own time. */
    advance: async (ms: number): Promise<void> => {
      const end = monotonic + ms;
      for (;;) {
        await settle();
        const next = Math.min(...[...entries].map((entry) => entry.at));
        if (next > end) break;
        monotonic = Math.max(monotonic, next);
        await runDue();
      }
      monotonic = end;
      await settle();
    },
    /** Lets time pass until the next timer is due, if there is one. */
    advanceToNext: async (): Promise<void> => {
      if (entries.size === 0) return;
      monotonic = Math.max(monotonic, Math.min(...[...entries].map((entry) => entry.at)));
      await runDue();
    },
    /** Lets time pass as for a suspended process: all at once, then runs the timers that are due. */
    jump: async (ms: number): Promise<void> => {
      monotonic += ms;
      await runDue();
    },
    setWall: (ms: number): void => {
      wallOffset = ms - monotonic;
    },
    /** Timers and sleeps that have not ended yet. */
    get pending(): number {
      return entries.size;
    },
  };
}

export interface HastyClock extends Clock {
  readonly sleeps: readonly number[];
}

/**
 * A real-time clock whose sleeps end in the next turn of the event loop. For retries against real servers.
 * @param skips whether a sleep of this length ends at once; others end only by their signal
 */
export function createHastyClock(skips: (ms: number) => boolean = () => true): HastyClock {
  const sleeps: number[] = [];
  return {
    ...systemClock,
    random: () => 0.5,
    sleeps,
    sleep: (ms, signal) => {
      sleeps.push(ms);
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason as Error);
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
        if (skips(ms)) setImmediate(resolve);
      });
    },
  };
}

/** The methods that a clock without timers lacks. */
export const noTimers: Pick<Clock, 'random' | 'sleep' | 'timer'> = {
  random: () => 0.5,
  sleep: () => Promise.reject(new Error('this clock has no timers: use createFakeClock')),
  timer: () => {
    throw new Error('this clock has no timers: use createFakeClock');
  },
};

/** Runs all code that is due now. */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => setImmediate(resolve));
  });
}
