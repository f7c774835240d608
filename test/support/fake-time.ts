/** Time that passes when the test says so: a clock, sleeps and timers that belong together. */
import type { Clock } from '../../src/telemetry/clock.ts';

export interface FakeTime {
  readonly clock: Clock;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly startTimer: (ms: number, run: () => void) => () => void;
  /** Lets time pass: what is due runs in its order, each with the clock at its time. */
  advance(ms: number): Promise<void>;
  /** Lets time pass as for a process that was stopped: all of it at once, then what is due. */
  jump(ms: number): Promise<void>;
  /** Sets the wall clock alone. */
  setWall(ms: number): void;
  /** Timers and sleeps that have not ended. */
  readonly pending: number;
}

interface Entry {
  readonly at: number;
  readonly run: () => void;
}

/** Wall clock and monotonic clock start apart, so that one taken for the other is found. */
const wallStart = Date.parse('2026-11-01T00:00:00Z');
const monotonicStart = 5_000_000;

export function createFakeTime(): FakeTime {
  let monotonic = monotonicStart;
  let wallOffset = wallStart - monotonicStart;
  const entries = new Set<Entry>();

  function startTimer(ms: number, run: () => void): () => void {
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
    clock: { now: () => monotonic + wallOffset, monotonic: () => monotonic },
    startTimer,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const onAbort = (): void => {
          cancel();
          reject(signal.reason as Error);
        };
        const cancel = startTimer(ms, () => {
          signal.removeEventListener('abort', onAbort);
          resolve();
        });
        if (signal.aborted) onAbort();
        else signal.addEventListener('abort', onAbort, { once: true });
      }),
    advance: async (ms) => {
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
    jump: async (ms) => {
      monotonic += ms;
      await runDue();
    },
    setWall: (ms) => {
      wallOffset = ms - monotonic;
    },
    get pending() {
      return entries.size;
    },
  };
}

/** Lets everything run that needs no time. */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => setImmediate(resolve));
  });
}
