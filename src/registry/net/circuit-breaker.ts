/**
 * The back-off for registries. A circuit opens for a pause after failures in a row. After the pause, one
 * request at a time is the trial. A success closes the circuit; otherwise the next pause is twice as long.
 *
 * A prefix (the first path segment of a repository) of a shared registry may belong to an attacker. So a
 * failure is charged to its prefix first, and `Retry-After` pauses only that prefix. All prefixes pause, for
 * a minute at most, if several of them failed without a success in between.
 */
import { backOffMs, type BackOff, type Clock } from '../../async/clock.ts';
import { BoundedMap } from '../../async/bounded-map.ts';
import type { TransportError, TransportFailure } from '../../http/transport-error.ts';
import { RegistryError } from '../manifest-lookup.ts';

/** A few broken connections in a busy minute must not stop a prefix. */
const maxFailures = 5;
/** One owner may have two broken prefixes; three at the same time are the host's trouble. */
const maxPrefixes = 3;
const pause: BackOff = { firstMs: 5000, mostMs: 60_000 };
/** Other requests come back after this time while a trial is under way. */
const trialMs = 1000;
/** Image references choose hosts and prefixes. Each failing one takes about 0.4 KiB. */
const maxCircuits = 4096;

/** These do not tell whether the host works: our rules, our limits, or the size of one response. */
const neutral: ReadonlySet<TransportFailure> = new Set<TransportFailure>([
  'aborted',
  'refused-address',
  'too-large',
  'encoded',
  'invalid',
  'not-tls',
]);

/** The circuits of a request: one of each key below, and one of each key with the prefix. */
export interface Route {
  /** The target, for people. */
  readonly where: string;
  readonly prefix: string;
  /** Counts failures of one registry; several may stand behind a mirror, and one that is dead stops no others. */
  readonly registry: string;
  /** Counts refusals by rate limits, which hold for one credential. */
  readonly account: string;
  /** It requests a token. */
  readonly isToken: boolean;
}

interface Circuit {
  /** Absent for all prefixes. */
  readonly prefix: string | undefined;
  readonly isAccount: boolean;
  failures: number;
  /** Prefixes that failed since the last pause. */
  readonly failing: Set<string>;
  pauses: number;
  /** Monotonic. */
  openUntil: number;
  hasTrial: boolean;
  /** The last failure, in words. */
  readonly why: string;
}

/** The request was not sent. */
export class CircuitOpen extends RegistryError {
  constructor(where: string, { prefix, isAccount, why }: Circuit, waitMs: number) {
    const target = prefix === undefined ? where : `${where}/${prefix}`;
    const message = `requests to ${target} are paused for ${Math.ceil(waitMs / 1000)} s: ${why}`;
    super(isAccount ? 'rate-limited' : 'unavailable', where, message, { retryAfterMs: waitMs });
  }
}

export class CircuitBreaker {
  /** Those with a failure since their last success. */
  readonly #circuits = new BoundedMap<string, Circuit>(maxCircuits);
  readonly #clock: Pick<Clock, 'monotonic'>;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Admits a request. Then `answered` or `failed` must be called. @throws CircuitOpen */
  admit(route: Route): void {
    const paused = this.#circuitsOf(route).filter(({ pauses }) => pauses > 0);
    for (const circuit of paused) {
      const waitMs = Math.max(this.#leftMs(circuit), circuit.hasTrial ? trialMs : 0);
      if (waitMs > 0) throw new CircuitOpen(route.where, circuit, waitMs);
    }
    for (const circuit of paused) circuit.hasTrial = true;
  }

  /**
   * A rate limit does not count requests for tokens, nor those that lead to one: they end no pause for it.
   * @param retryAfterMs the pause that the response requests
   */
  answered(route: Route, status: number, retryAfterMs?: number): void {
    const { registry, account } = route;
    const isCounted = status !== 401 && !route.isToken;
    const failing = status === 429 ? account : status >= 500 ? registry : undefined;
    const working = [registry, account].filter((key) => key !== failing);
    for (const name of namesOf(route, working)) {
      const circuit = this.#circuits.peek(name);
      // A response to an older request does not shorten a pause that began since.
      if (circuit?.isAccount && !isCounted) circuit.hasTrial = false;
      else if (circuit && this.#leftMs(circuit) <= 0) this.#circuits.delete(name);
    }
    if (failing !== undefined) this.#failed(route, failing, `it answered ${status}`, retryAfterMs);
  }

  failed(route: Route, { failure, message }: TransportError): void {
    for (const circuit of this.#circuitsOf(route)) circuit.hasTrial = false;
    if (!neutral.has(failure)) this.#failed(route, route.registry, message);
  }

  #failed({ prefix, account }: Route, key: string, why: string, retryAfterMs = 0): void {
    const isAccount = key === account;
    const part = this.#circuit(`${key} ${prefix}`, { prefix, isAccount, why });
    part.failures += 1;
    this.#pause(part, part.failures >= maxFailures, retryAfterMs);
    const all = this.#circuit(key, { prefix: undefined, isAccount, why });
    all.failing.add(prefix);
    this.#pause(all, all.failing.size >= maxPrefixes);
  }

  /** A failure of an older request does not lengthen a pause, unless the response requests it. */
  #pause(circuit: Circuit, isDue: boolean, requestedMs = 0): void {
    const leftMs = Math.max(this.#leftMs(circuit), 0);
    const growingMs = isDue && leftMs === 0 ? backOffMs(pause, circuit.pauses + 1) : 0;
    const pauseMs = Math.max(growingMs, requestedMs);
    if (pauseMs <= leftMs) return;
    circuit.pauses += 1;
    circuit.openUntil = this.#clock.monotonic() + pauseMs;
    circuit.failing.clear();
  }

  #leftMs({ openUntil }: Circuit): number {
    return openUntil - this.#clock.monotonic();
  }

  #circuitsOf(route: Route): readonly Circuit[] {
    const names = namesOf(route, [route.registry, route.account]);
    return names.flatMap((name) => this.#circuits.get(name) ?? []);
  }

  #circuit(name: string, last: Pick<Circuit, 'prefix' | 'isAccount' | 'why'>): Circuit {
    const closed = { failures: 0, failing: new Set<string>(), pauses: 0, openUntil: 0 };
    const circuit: Circuit = { ...closed, ...this.#circuits.get(name), ...last, hasTrial: false };
    this.#circuits.set(name, circuit);
    return circuit;
  }
}

function namesOf({ prefix }: Route, keys: readonly string[]): readonly string[] {
  return keys.flatMap((key) => [`${key} ${prefix}`, key]);
}
