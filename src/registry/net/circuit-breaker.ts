/**
 * The breaker leaves a host alone that keeps failing, or that asked to be left alone. After a pause one request is let
 * through as a trial: its success closes the breaker, its failure doubles the pause. Only failures of the host itself count
 * (no connection, no HTTP, 5xx), never what it says about one image.
 */
import type { Clock } from '../../async/clock.ts';

export interface BreakerOptions {
  /** Failures in a row that open it. */
  readonly threshold?: number;
  readonly firstPauseMs?: number;
  readonly maxPauseMs?: number;
}

/** Enough that a few broken connections of a busy minute do not count. */
const defaultThreshold = 5;
const defaultFirstPauseMs = 5000;
const defaultMaxPauseMs = 2 * 60_000;

/** Hosts remembered; image references choose hosts, so there could be any number. */
const maxHosts = 1000;

export interface CircuitBreaker {
  /**
   * Asks whether a host may be asked.
   * @returns 0 where it may; otherwise the milliseconds until it may be tried again
   */
  wait(host: string): number;
  succeeded(host: string): void;
  failed(host: string): void;
  /** The trial ended without telling anything (the asker gave up). */
  inconclusive(host: string): void;
  /** Leaves a host alone for a time that the host named. */
  pause(host: string, ms: number): void;
}

interface State {
  failures: number;
  pauseMs: number;
  /** Monotonic; before it nobody asks. */
  openUntil: number;
  trial: boolean;
}

export function createCircuitBreaker(clock: Clock, options: BreakerOptions = {}): CircuitBreaker {
  const threshold = options.threshold ?? defaultThreshold;
  const firstPauseMs = options.firstPauseMs ?? defaultFirstPauseMs;
  const maxPauseMs = options.maxPauseMs ?? defaultMaxPauseMs;
  const states = new Map<string, State>();

  function stateOf(host: string): State {
    const state = states.get(host) ?? { failures: 0, pauseMs: 0, openUntil: 0, trial: false };
    states.delete(host);
    states.set(host, state);
    const oldest = states.keys().next();
    if (states.size > maxHosts && !oldest.done) states.delete(oldest.value);
    return state;
  }

  return {
    wait: (host) => {
      const state = states.get(host);
      if (!state || state.openUntil === 0) return 0;
      const left = state.openUntil - clock.monotonic();
      if (left > 0) return left;
      if (state.trial) return Math.max(state.pauseMs, 1);
      state.trial = true;
      return 0;
    },
    succeeded: (host) => {
      const state = states.get(host);
      // An answer to an older request does not shorten a pause that the host asked for since.
      if (state && state.openUntil <= clock.monotonic()) states.delete(host);
    },
    failed: (host) => {
      const state = stateOf(host);
      state.failures += 1;
      const open = state.openUntil > clock.monotonic();
      if (open || (!state.trial && state.failures < threshold)) return;
      state.trial = false;
      state.pauseMs = Math.min(state.pauseMs === 0 ? firstPauseMs : state.pauseMs * 2, maxPauseMs);
      state.openUntil = clock.monotonic() + state.pauseMs;
    },
    inconclusive: (host) => {
      const state = states.get(host);
      if (state) state.trial = false;
    },
    pause: (host, ms) => {
      const state = stateOf(host);
      state.openUntil = Math.max(state.openUntil, clock.monotonic() + ms);
      state.trial = false;
    },
  };
}
