/**
 * Tokens, remembered for as long as they may be trusted. The key says everything that a token was issued for: scheme, host
 * and port of the registry, realm, service, scopes **and** what logged in, so a token of one registry, or of one pod's
 * secret, is never used for another. Concurrent askers of one key share one exchange.
 */
import type { Clock } from '../../async/clock.ts';
import { SingleFlight } from '../../async/single-flight.ts';
import type { BearerToken } from './token-response.ts';
import type { Secret } from '../../telemetry/secret.ts';

/** A token is one to four KiB: a few MiB at the most. */
const maxTokens = 1000;

export interface TokenKey {
  /** `https://registry.corp:5000`. */
  readonly registry: string;
  readonly realm: string;
  readonly service: string;
  readonly scopes: readonly string[];
  /** Identity of the credential, or `anonymous`. */
  readonly credential: string;
  /** Identity of the headers of the endpoint that the token server saw, or an empty text: they may have logged in. */
  readonly headers: string;
}

export interface TokenCache {
  /**
   * A token from memory, or from `fetch`, which is shared by all who ask for the same at the same time and is ended
   * when the last of them has given up.
   * @returns the token, and whether it was remembered (then it may have been revoked since)
   */
  get(
    key: TokenKey,
    signal: AbortSignal,
    fetch: (signal: AbortSignal) => Promise<BearerToken>,
  ): Promise<{ token: Secret; remembered: boolean }>;
  /** Drops a token that was refused, unless it has been replaced already. */
  forget(key: TokenKey, token: Secret): void;
  clear(): void;
  readonly size: number;
}

interface Kept {
  readonly token: Secret;
  /** Monotonic: a wall clock that jumps must not make a token last. */
  readonly refreshAt: number;
}

export function createTokenCache(clock: Clock): TokenCache {
  const tokens = new Map<string, Kept>();
  const flights = new SingleFlight<Secret>({ abortAbandoned: true });

  function keep(id: string, answer: BearerToken): void {
    tokens.delete(id);
    tokens.set(id, {
      token: answer.token,
      refreshAt: clock.monotonic() + (answer.refreshAt - clock.now()),
    });
    const oldest = tokens.keys().next();
    if (tokens.size > maxTokens && !oldest.done) tokens.delete(oldest.value);
  }

  return {
    get: async (key, signal, fetch) => {
      signal.throwIfAborted();
      const id = idOf(key);
      const kept = tokens.get(id);
      if (kept && clock.monotonic() < kept.refreshAt) return { token: kept.token, remembered: true };
      const token = await flights.run(
        id,
        async (stop) => {
          const answer = await fetch(stop);
          keep(id, answer);
          return answer.token;
        },
        signal,
      );
      return { token, remembered: false };
    },
    forget: (key, token) => {
      const id = idOf(key);
      if (tokens.get(id)?.token === token) tokens.delete(id);
    },
    clear: () => tokens.clear(),
    get size() {
      return tokens.size;
    },
  };
}

function idOf({ registry, realm, service, scopes, credential, headers }: TokenKey): string {
  return JSON.stringify([registry, realm, service, scopes, credential, headers]);
}
