/** A loop of passes: each looks at the whole state and puts it right; between them it sleeps until something happens. */
import { KubeError } from '../../kube/api/errors.ts';
import { wait } from '../../async/wait.ts';
import type { Clock } from '../../async/clock.ts';

export interface Passes {
  /** Ends the sleep under way, or else the next one. */
  readonly kick: () => void;
  /** Resolves when the signal has aborted and the pass under way has ended. */
  run(pass: () => Promise<PassOutcome>): Promise<void>;
}

export interface PassOutcome {
  /** Whether anything had to be written. */
  readonly wrote: boolean;
  /** When to look again where nothing happens, milliseconds. */
  readonly nextMs: number;
}

export interface PassesOptions {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Hears why a pass failed; the next one comes after a back-off. */
  readonly onFailure: (problem: string) => void;
  /** Waits; injected by tests. */
  readonly sleep?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
  readonly random?: (() => number) | undefined;
}

/** Back-off after a failure. */
const backoff = { firstMs: 1000, mostMs: 60_000 };
/** Pause after a write; doubled where it has to be repeated again and again, because somebody else writes too. */
const calm = { firstMs: 100, mostMs: 60_000, forgottenAfterMs: 5 * 60_000 };
/** Longer times overflow Node's timers; waking too early costs one look. */
const mostMs = 24 * 60 * 60_000;

export function createPasses(options: PassesOptions): Passes {
  const { signal, clock, onFailure, sleep = wait, random = Math.random } = options;
  let kicked = false;
  let sleeping: AbortController | undefined;

  /** Not to be woken: what wakes may be the very thing that fails. */
  function pause(ms: number): Promise<void> {
    return sleep(ms, signal).catch(() => undefined);
  }

  async function untilKicked(ms: number): Promise<void> {
    if (!kicked && !signal.aborted) {
      sleeping = new AbortController();
      const either = AbortSignal.any([signal, sleeping.signal]);
      await sleep(Math.min(Math.max(ms, 0), mostMs), either).catch(() => undefined);
      sleeping = undefined;
    }
  }

  return {
    kick: () => {
      kicked = true;
      sleeping?.abort(new Error('woken'));
    },
    run: async (pass) => {
      let failures = 0;
      let writes = 0;
      let lastWrite = 0;
      while (!signal.aborted) {
        // What happens from here on may be seen by this pass, or not.
        kicked = false;
        try {
          const { wrote, nextMs } = await pass();
          failures = 0;
          if (wrote) {
            if (clock.monotonic() - lastWrite > calm.forgottenAfterMs) writes = 0;
            lastWrite = clock.monotonic();
            await pause(Math.min(calm.mostMs, calm.firstMs * 2 ** writes));
            writes = Math.min(writes + 1, 20);
          }
          await untilKicked(nextMs);
        } catch (error) {
          if (signal.aborted) return;
          const isOvertaken = error instanceof KubeError && error.code === 'conflict';
          if (!isOvertaken) onFailure(error instanceof Error ? error.message : String(error));
          const ms = Math.min(backoff.mostMs, backoff.firstMs * 2 ** failures) * (0.5 + random() / 2);
          failures = Math.min(failures + 1, 10);
          await pause(isOvertaken && failures === 1 ? calm.firstMs : ms);
        }
      }
    },
  };
}
