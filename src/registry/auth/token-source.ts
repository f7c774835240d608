/** Tokens for endpoints, from the cache or from the token server in the challenge. */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { Clock } from '../../async/clock.ts';
import { SingleFlight } from '../../async/single-flight.ts';
import type { MatchedCredential } from '../../credentials/credential.ts';
import { headersId } from '../../credentials/identity.ts';
import type { HttpResponse } from '../../http/client.ts';
import { isLoginHeader } from '../../http/headers.ts';
import { endpointReach, targetReach } from '../../http/reach/reach.ts';
import type { Secret } from '../../telemetry/secret.ts';
import { headersOf } from '../endpoints/endpoint.ts';
import type { EndpointRequest, GuardedClient } from '../net/guarded-client.ts';
import { followRedirects } from '../net/redirect.ts';
import { isSameServer, type BearerScheme } from './auth-scheme.ts';
import { fetchToken, maxTokenBytes, type BearerToken, type TokenExchange } from './token.ts';

export interface AuthParts {
  readonly client: GuardedClient;
  readonly clock: Clock;
}

export interface GrantedToken {
  readonly key: TokenKey;
  readonly token: Secret;
  /** Whether it was in the cache; then it may have been revoked since. */
  readonly cached: boolean;
}

export class TokenSource {
  readonly #parts: AuthParts;
  readonly #cache: TokenCache;

  constructor(parts: AuthParts) {
    this.#parts = parts;
    this.#cache = new TokenCache(parts.clock);
  }

  /** @throws TokenRefused, InvalidTokenResponse, and errors of the exchange */
  async get(
    request: EndpointRequest,
    scheme: BearerScheme,
    usable: MatchedCredential | undefined,
    signal: AbortSignal,
  ): Promise<GrantedToken> {
    const { realm, service, scopes } = scheme;
    const headers = tokenHeadersOf(request, realm);
    const key: TokenKey = {
      registry: `${request.url.protocol}//${request.url.host}`,
      realm: realm.href,
      service,
      scopes,
      credential: usable?.id ?? 'anonymous',
      headers: Object.keys(headers).length === 0 ? '' : headersId(headers),
    };
    const granted = await this.#cache.get(key, signal, (shared) =>
      fetchToken(
        { ...scheme, ...(usable && { credential: usable.credential }) },
        (exchange) => this.#send({ ...request, credential: usable }, scheme, exchange, shared),
        () => this.#parts.clock.now(),
      ),
    );
    return { key, ...granted };
  }

  /** Removes a token that the endpoint rejected. */
  forget(granted: GrantedToken | undefined): void {
    if (granted) this.#cache.forget(granted.key, granted.token);
  }

  clear(): void {
    this.#cache.clear();
  }

  async #send(
    request: EndpointRequest,
    { registryIp }: BearerScheme,
    { method, url, body, headers: { authorization, ...headers } }: TokenExchange,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const { endpoint } = request;
    const { client } = this.#parts;
    const isEndpoint = isSameServer(request.url, url);
    const ownHeaders = {
      ...tokenHeadersOf(request, url),
      ...(authorization !== undefined && { authorization }),
    };
    const step = {
      method,
      url,
      body,
      headers,
      maxBytes: maxTokenBytes,
      tls: isEndpoint ? endpoint.tls : { ...endpoint.tls, client: [] },
      reach: isEndpoint ? endpointReach(endpoint) : targetReach(registryIp),
    };
    const sent = { ...request, purpose: 'token' } as const;
    // A redirected POST would carry the password to the target of the redirect.
    if (method === 'POST') {
      return await client.send({ ...step, headers: { ...headers, ...ownHeaders } }, sent, signal);
    }
    return await followRedirects({ ...step, ownHeaders }, (next) => client.send(next, sent, signal));
  }
}

/** Headers for the token server. Login headers only if the endpoint itself issues the tokens. */
function tokenHeadersOf(request: EndpointRequest, realm: URL): Record<string, string> {
  const { tokenHeaders = [] } = request.endpoint;
  const isEndpoint = isSameServer(request.url, realm);
  return headersOf(isEndpoint ? tokenHeaders : tokenHeaders.filter(({ name }) => !isLoginHeader(name)));
}

/** A token has one to four KiB: a few MiB at most. */
const maxTokens = 1000;

/** All that a token was issued for: it is never used for another registry or pod. */
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
  readonly #fetches = new SingleFlight<Secret>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * A cached token, or one from `fetch`. Concurrent callers share a fetch; it is aborted when the last of
   * them gives up.
   * @returns the token, and whether it was cached (then it may have been revoked since)
   */
  async get(
    key: TokenKey,
    signal: AbortSignal,
    fetch: (signal: AbortSignal) => Promise<BearerToken>,
  ): Promise<{ token: Secret; cached: boolean }> {
    const id = JSON.stringify(key);
    const known = this.#tokens.get(id);
    if (known && this.#clock.monotonic() < known.refreshAt) return { token: known.token, cached: true };
    const store = async (shared: AbortSignal): Promise<Secret> => this.#store(id, await fetch(shared));
    return { token: await this.#fetches.run(id, store, signal), cached: false };
  }

  /** Removes a token that was rejected, unless it has been replaced already. */
  forget(key: TokenKey, token: Secret): void {
    const id = JSON.stringify(key);
    if (this.#tokens.peek(id)?.token === token) this.#tokens.delete(id);
  }

  clear(): void {
    this.#tokens.clear();
  }

  #store(id: string, { token, refreshAt }: BearerToken): Secret {
    const remainingMs = refreshAt - this.#clock.now();
    this.#tokens.set(id, { token, refreshAt: this.#clock.monotonic() + remainingMs });
    return token;
  }
}
