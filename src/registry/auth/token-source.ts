/** Tokens for endpoints, from the cache or from the token server in the challenge. */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { Clock } from '../../async/clock.ts';
import { SingleFlight } from '../../async/single-flight.ts';
import type { MatchedCredential } from '../../credentials/credential.ts';
import { headersId } from '../../credentials/identity.ts';
import { type HttpResponse, isLoginHeader } from '../../http/client.ts';
import { endpointReach, targetReach } from '../../http/reach/reach.ts';
import type { Secret } from '../../telemetry/secret.ts';
import { headersOf } from '../endpoints/endpoint.ts';
import type { EndpointRequest, GuardedClient } from '../net/guarded-client.ts';
import { isSameServer, type BearerScheme } from './challenge.ts';
import { fetchToken, maxTokenBytes, type TokenExchange } from './token.ts';

export interface GrantedToken {
  /** Equal for all that a token was issued for. */
  readonly id: string;
  readonly token: Secret;
  /** Whether it was in the cache; then it may have been revoked since. */
  readonly cached: boolean;
}

/** A token has one to four KiB: a few MiB at most. */
const maxTokens = 1000;

interface CachedToken {
  readonly token: Secret;
  /** Monotonic: a jump of the wall clock must not prolong a token. */
  readonly refreshAt: number;
}

export class TokenSource {
  readonly #client: GuardedClient;
  readonly #clock: Clock;
  readonly #tokens = new BoundedMap<string, CachedToken>(maxTokens);
  readonly #fetches = new SingleFlight<Secret>();

  constructor(client: GuardedClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /**
   * A cached token, or a new one. Concurrent callers share a request; it is aborted when the last of them gives up.
   * @param usable the credential; absent: anonymous
   * @throws TokenRefused, InvalidTokenResponse, and errors of the exchange
   */
  async get(
    request: EndpointRequest,
    scheme: BearerScheme,
    usable: MatchedCredential | undefined,
    signal: AbortSignal,
  ): Promise<GrantedToken> {
    const id = idOf(request, scheme, usable);
    const known = this.#tokens.get(id);
    if (known && this.#clock.monotonic() < known.refreshAt) return { id, token: known.token, cached: true };
    const fetch = async (shared: AbortSignal): Promise<Secret> => {
      const { token, lastsMs } = await fetchToken(
        { ...scheme, ...(usable && { credential: usable.credential }) },
        (exchange) => this.#send({ ...request, credential: usable }, scheme, exchange, shared),
        () => this.#clock.now(),
      );
      this.#tokens.set(id, { token, refreshAt: this.#clock.monotonic() + lastsMs });
      return token;
    };
    return { id, token: await this.#fetches.run(id, fetch, signal), cached: false };
  }

  /** Removes a token that the endpoint rejected, unless it has been replaced already. */
  forget(granted: GrantedToken | undefined): void {
    if (granted && this.#tokens.peek(granted.id)?.token === granted.token) this.#tokens.delete(granted.id);
  }

  async #send(
    request: EndpointRequest,
    { registryIp }: BearerScheme,
    { method, url, body, headers: { authorization, ...headers } }: TokenExchange,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const { endpoint } = request;
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
      ownHeaders,
    };
    return await this.#client.send(step, { ...request, purpose: 'token' }, signal);
  }
}

/** All that a token is issued for: it is never used for another registry or pod. */
export function idOf(
  request: EndpointRequest,
  { realm, service, scopes }: BearerScheme,
  usable: MatchedCredential | undefined,
): string {
  const { protocol, host } = request.url;
  const headers = tokenHeadersOf(request, realm);
  // They may authenticate.
  const sent = Object.keys(headers).length === 0 ? '' : headersId(headers);
  return JSON.stringify([protocol, host, realm.href, service, scopes, usable?.id ?? 'anonymous', sent]);
}

/** Headers for the token server. Login headers only if the endpoint itself issues the tokens. */
function tokenHeadersOf(request: EndpointRequest, realm: URL): Record<string, string> {
  const { tokenHeaders = [] } = request.endpoint;
  const isEndpoint = isSameServer(request.url, realm);
  return headersOf(isEndpoint ? tokenHeaders : tokenHeaders.filter(({ name }) => !isLoginHeader(name)));
}
