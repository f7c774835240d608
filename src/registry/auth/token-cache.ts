/**
 * Tokens, kept while they are valid. The key covers everything that a token was issued for: scheme, host and port of the
 * registry, realm, service, scopes **and** the credential. So a token of one registry, or of one pod's secret, is never used for
 * another. Concurrent requests for one key share one exchange.
 */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { Clock } from '../../async/clock.ts';
import { SingleFlight } from '../../async/single-flight.ts';
import type { Secret } from '../../telemetry/secret.ts';
import type { BearerToken } from './token-response.ts';

/** A token has one to four KiB: a few MiB at most. */
const maxTokens = 1000;

export interface TokenKey {
  /** `https://registry.corp:5000`. */
  readonly registry: string;
  readonly realm: string;
  readonly service: string;
  readonly scopes: readonly string[];
  /** Identity of the credential, or `anonymous`. */
  readonly credential: string;
  /** Identity of the endpoint's headers that the token server received, or empty: they may authenticate. */
  readonly headers: string;
}

interface CachedToken {
  readonly token: Secret;
  /** Monotonic: a jump of the wall clock must not prolong a token. */
  readonly refreshAt: number;
}

export class TokenCache {
  readonly #tokens = new BoundedMap<string, CachedToken>(maxTokens);
  readonly #fetches = new SingleFlight<Secret>({ abortAbandoned: true });
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * A cached token, or one from `fetch`. Concurrent callers share a fetch; it is aborted when the last of them gives up.
   * @returns the token, and whether it was cached (then it may have been revoked since)
   */
  async get(
    key: TokenKey,
    signal: AbortSignal,
    fetch: (signal: AbortSignal) => Promise<BearerToken>,
  ): Promise<{ token: Secret; cached: boolean }> {
    const id = idOf(key);
    const known = this.#tokens.get(id);
    if (known && this.#clock.monotonic() < known.refreshAt) return { token: known.token, cached: true };
    const store = async (shared: AbortSignal): Promise<Secret> => this.#store(id, await fetch(shared));
    return { token: await this.#fetches.run(id, store, signal), cached: false };
  }

  /** Removes a token that was rejected, unless it has been replaced already. */
  forget(key: TokenKey, token: Secret): void {
    const id = idOf(key);
    if (this.#tokens.peek(id)?.token === token) this.#tokens.delete(id);
  }

  clear(): void {
    this.#tokens.clear();
  }

  get size(): number {
    return this.#tokens.size;
  }

  #store(id: string, { token, refreshAt }: BearerToken): Secret {
    const remainingMs = refreshAt - this.#clock.now();
    this.#tokens.set(id, { token, refreshAt: this.#clock.monotonic() + remainingMs });
    return token;
  }
}

function idOf({ registry, realm, service, scopes, credential, headers }: TokenKey): string {
  return JSON.stringify([registry, realm, service, scopes, credential, headers]);
}
