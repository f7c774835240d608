/**
 * A circuit breaker. A circuit opens after several failures in a row, or for a pause that the host requested.
 * After the pause one request is the trial: success closes the circuit, failure doubles the pause. Only
 * failures of the host itself count (no connection, no response, no HTTP, 5xx), never a response about one
 * image.
 *
 * A failure can be charged to one repository. It then opens the circuit of that repository, and the circuit
 * of the host only if several repositories failed without a success in between: one repository of a shared
 * registry may belong to an attacker.
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

/** Image references choose hosts and repositories. Each failing one takes about 0.4 KiB. */
const maxCircuits = 4096;

/** One owner may have two broken repositories; three at the same time are the host's trouble. */
const several = 3;

/** The circuit of a host is open: the request was not sent. */
export class CircuitOpen extends Error {
  override readonly name = 'CircuitOpen';
  readonly code = 'circuit-open';
  readonly temporary = true;
  readonly where: string;
  readonly retryAfterMs: number;
  /** Whether the host requested the pause with 429. */
  readonly rateLimited: boolean;
  /** @param why the last failure, in words */
  constructor(
    where: string,
    { retryAfterMs, rateLimited, why }: { retryAfterMs: number; rateLimited: boolean; why: string },
  ) {
    super(`${where} gets no requests for ${Math.ceil(retryAfterMs / 1000)} s: ${why}`);
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
  /** Repositories that failed since the last success, at most `several`. */
  readonly failing: Set<string>;
  /** The last failure, in words. */
  why: string;
}

export class CircuitBreaker {
  readonly #circuits = new BoundedMap<string, Circuit>(maxCircuits);
  readonly #clock: Clock;
  readonly #options: Required<BreakerOptions>;

  constructor(clock: Clock, options: BreakerOptions = {}) {
    this.#clock = clock;
    this.#options = { ...defaults, ...options };
  }

  /** Admits a request (0), or returns the ms until the next try. After a pause it is the trial. */
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

  /** The last failure of a circuit, as `failed` or `pause` got it. */
  whyOf(key: string): string {
    return this.#circuits.peek(key)?.why ?? '';
  }

  /** @param repository charges the failure to one repository of the host */
  failed(key: string, why: string, repository?: string): void {
    const { threshold, firstPauseMs, maxPauseMs } = this.#options;
    const circuit = this.#circuit(key);
    const now = this.#clock.monotonic();
    circuit.failures += 1;
    circuit.why = why;
    const isEnough = this.#isOfHost(circuit, repository) && circuit.failures >= threshold;
    if (repository !== undefined) this.failed(partOf(key, repository), why);
    if (circuit.openUntil > now || (!circuit.trial && !isEnough)) return;
    circuit.trial = false;
    circuit.pauseMs = Math.min(circuit.pauseMs * 2 || firstPauseMs, maxPauseMs);
    circuit.openUntil = now + circuit.pauseMs;
  }

  /** The admitted request ended without a result that counts, for example because its caller gave up. */
  inconclusive(key: string): void {
    const circuit = this.#circuits.peek(key);
    if (circuit) circuit.trial = false;
  }

  /** Opens a circuit for a requested pause. @param repository charges it to one repository */
  pause(key: string, ms: number, why: string, repository?: string): void {
    const circuit = this.#circuit(key);
    circuit.why = why;
    if (repository !== undefined) this.pause(partOf(key, repository), ms, why);
    if (!circuit.trial && !this.#isOfHost(circuit, repository)) return;
    circuit.openUntil = Math.max(circuit.openUntil, this.#clock.monotonic() + ms);
    circuit.trial = false;
  }

  /** Notes a failing repository. @returns whether the host itself is in trouble */
  #isOfHost({ failing }: Circuit, repository: string | undefined): boolean {
    if (repository === undefined) return true;
    if (failing.size < several) failing.add(repository);
    return failing.size >= several;
  }

  #circuit(key: string): Circuit {
    const closed = {
      failures: 0,
      pauseMs: 0,
      openUntil: 0,
      trial: false,
      failing: new Set<string>(),
      why: '',
    };
    const circuit = this.#circuits.get(key) ?? closed;
    this.#circuits.set(key, circuit);
    return circuit;
  }
}

export function partOf(key: string, repository: string): string {
  return `${key} ${repository}`;
}
