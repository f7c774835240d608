/**
 * A circuit breaker. A circuit opens after several failures in a row, or for a pause that the host requested. After the pause
 * one request is the trial: success closes the circuit, failure doubles the pause. Only failures of the host itself count
 * (no connection, no HTTP, 5xx), never a response about one image.
 */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { Clock } from '../../async/clock.ts';

export interface BreakerOptions {
  /** Failures in a row that open a circuit. */
  readonly threshold?: number;
  readonly firstPauseMs?: number;
  readonly maxPauseMs?: number;
}

/** A few broken connections in a busy minute must not open a circuit. */
const defaults: Required<BreakerOptions> = { threshold: 5, firstPauseMs: 5000, maxPauseMs: 2 * 60_000 };

/** Image references choose hosts, so there could be any number. */
const maxCircuits = 1000;

/** The circuit of a host is open: the request was not sent. */
export class CircuitOpen extends Error {
  override readonly name = 'CircuitOpen';
  readonly code = 'circuit-open';
  readonly temporary = true;
  readonly where: string;
  readonly retryAfterMs: number;
  /** Whether the host requested the pause with 429. */
  readonly rateLimited: boolean;
  constructor(where: string, retryAfterMs: number, rateLimited: boolean) {
    super(`${where} gets no requests for ${Math.ceil(retryAfterMs / 1000)} s`);
    this.where = where;
    this.retryAfterMs = retryAfterMs;
    this.rateLimited = rateLimited;
  }
}

interface Circuit {
  failures: number;
  pauseMs: number;
  /** Monotonic. */
  openUntil: number;
  /** Whether a request is under way that decides whether the circuit closes. */
  trial: boolean;
}

export class CircuitBreaker {
  readonly #circuits = new BoundedMap<string, Circuit>(maxCircuits);
  readonly #clock: Clock;
  readonly #options: Required<BreakerOptions>;

  constructor(clock: Clock, options: BreakerOptions = {}) {
    this.#clock = clock;
    this.#options = { ...defaults, ...options };
  }

  /**
   * Admits a request (returns 0), or returns the milliseconds until the next try. After a pause it is the trial.
   */
  admit(key: string): number {
    const circuit = this.#circuits.get(key);
    if (!circuit || circuit.openUntil === 0) return 0;
    const left = circuit.openUntil - this.#clock.monotonic();
    if (left > 0) return left;
    if (circuit.trial) return Math.max(circuit.pauseMs, 1);
    circuit.trial = true;
    return 0;
  }

  succeeded(key: string): void {
    const circuit = this.#circuits.peek(key);
    // A response to an older request does not shorten a pause that began since.
    if (circuit && circuit.openUntil <= this.#clock.monotonic()) this.#circuits.delete(key);
  }

  failed(key: string): void {
    const { threshold, firstPauseMs, maxPauseMs } = this.#options;
    const circuit = this.#circuit(key);
    const now = this.#clock.monotonic();
    circuit.failures += 1;
    if (circuit.openUntil > now || (!circuit.trial && circuit.failures < threshold)) return;
    circuit.trial = false;
    circuit.pauseMs = Math.min(circuit.pauseMs * 2 || firstPauseMs, maxPauseMs);
    circuit.openUntil = now + circuit.pauseMs;
  }

  /** The admitted request ended without a result that counts, for example because its caller gave up. */
  inconclusive(key: string): void {
    const circuit = this.#circuits.peek(key);
    if (circuit) circuit.trial = false;
  }

  /** Opens a circuit for a pause that the host requested. */
  pause(key: string, ms: number): void {
    const circuit = this.#circuit(key);
    circuit.openUntil = Math.max(circuit.openUntil, this.#clock.monotonic() + ms);
    circuit.trial = false;
  }

  #circuit(key: string): Circuit {
    const circuit = this.#circuits.get(key) ?? { failures: 0, pauseMs: 0, openUntil: 0, trial: false };
    this.#circuits.set(key, circuit);
    return circuit;
  }
}
