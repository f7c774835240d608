/** Tokens for requests to endpoints: from the cache, or from the token server that the endpoint's challenge named. */
import type { MatchedCredential } from '../../credentials/credential.ts';
import { headersId } from '../../credentials/identity.ts';
import type { Clock } from '../../async/clock.ts';
import type { HttpResponse } from '../../http/client.ts';
import { isLoginHeader } from '../../http/login-headers.ts';
import { endpointReach, targetReach, type AddressPolicy } from '../../http/reach/reach.ts';
import type { Secret } from '../../telemetry/secret.ts';
import type { GuardedClient } from '../net/guarded-client.ts';
import { followRedirects } from '../net/redirect.ts';
import type { BearerScheme } from './auth-scheme.ts';
import { contextOf, headersOf, type EndpointRequest } from './endpoint-request.ts';
import { TokenCache, type TokenKey } from './token-cache.ts';
import { fetchToken, maxTokenBytes, type TokenExchange } from './token.ts';

export interface GrantedToken {
  readonly key: TokenKey;
  readonly token: Secret;
  /** Whether it was in the cache; then it may have been revoked since. */
  readonly cached: boolean;
}

export class TokenSource {
  readonly #client: GuardedClient;
  readonly #clock: Clock;
  readonly #policy: AddressPolicy;
  readonly #cache: TokenCache;

  constructor(parts: {
    readonly client: GuardedClient;
    readonly clock: Clock;
    readonly policy: AddressPolicy;
  }) {
    this.#client = parts.client;
    this.#clock = parts.clock;
    this.#policy = parts.policy;
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
        (exchange) => this.#send(request, scheme, exchange, usable !== undefined, shared),
        () => this.#clock.now(),
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
    scheme: BearerScheme,
    exchange: TokenExchange,
    credentialUsed: boolean,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const { endpoint } = request;
    const isEndpoint = isSameServer(request, exchange.url);
    const { authorization, ...headers } = exchange.headers;
    const ownHeaders = {
      ...tokenHeadersOf(request, exchange.url),
      ...(authorization !== undefined && { authorization }),
    };
    const step = {
      method: exchange.method,
      url: exchange.url,
      body: exchange.body,
      headers,
      maxBytes: maxTokenBytes,
      tls: isEndpoint ? endpoint.tls : { ...endpoint.tls, client: [] },
      reach: isEndpoint
        ? endpointReach(endpoint, this.#policy)
        : targetReach(scheme.registryIp, this.#policy),
    };
    const context = contextOf(request, 'token', credentialUsed);
    // A redirected POST would carry the password to the target of the redirect.
    if (exchange.method === 'POST') {
      return await this.#client.send({ ...step, headers: { ...headers, ...ownHeaders } }, context, signal);
    }
    return await followRedirects({ ...step, ownHeaders }, this.#policy, (next) =>
      this.#client.send(next, context, signal),
    );
  }
}

/** Headers for the token server. A header that authenticates is sent only if the endpoint itself issues the tokens. */
function tokenHeadersOf(request: EndpointRequest, realm: URL): Record<string, string> {
  const { tokenHeaders = [] } = request.endpoint;
  const isEndpoint = isSameServer(request, realm);
  return headersOf(isEndpoint ? tokenHeaders : tokenHeaders.filter(({ name }) => !isLoginHeader(name)));
}

function isSameServer({ url }: EndpointRequest, realm: URL): boolean {
  return realm.host === url.host && realm.protocol === url.protocol;
}
