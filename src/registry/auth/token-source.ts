/**
 * Tokens for endpoints, from the cache or from the token server in the challenge (containerd
 * `core/remotes/docker/authorizer.go`, `auth/fetch.go`; distribution `spec/auth/token.md`, `oauth.md`): with a
 * secret a POST in the OAuth2 form, and if the server does not support that, a GET with Basic; without a secret
 * an anonymous GET.
 */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { Clock } from '../../async/clock.ts';
import { SingleFlight } from '../../async/single-flight.ts';
import type { Credential, MatchedCredential } from '../../credentials/credential.ts';
import { headersId } from '../../credentials/identity.ts';
import { type HttpRequest, type HttpResponse, isLoginHeader } from '../../http/client.ts';
import { endpointReach, targetReach } from '../../http/reach/reach.ts';
import { reveal, type Secret } from '../../telemetry/secret.ts';
import { headersOf } from '../endpoints/endpoint.ts';
import type { EndpointRequest, GuardedSend } from '../net/guarded-client.ts';
import { isSameServer, type BearerScheme } from './challenge.ts';
import { basic, isSuccess, tokenIn, type BearerToken } from './token.ts';

export interface GrantedToken {
  /** Equal for all that a token was issued for. */
  readonly id: string;
  readonly token: Secret;
  /** Whether it was in the cache; then it may have been revoked since. */
  readonly cached: boolean;
}

/** A token has one to four KiB: a few MiB at most. */
const maxTokens = 1000;
/** Token responses have one to four KiB; go-containerregistry has the same bound. */
const maxTokenBytes = 64 * 1024;

interface CachedToken {
  readonly token: Secret;
  /** Monotonic: a jump of the wall clock must not prolong a token. */
  readonly refreshAt: number;
}

export function createTokenSource(guardedSend: GuardedSend, clock: Clock) {
  const tokens = new BoundedMap<string, CachedToken>(maxTokens);
  const fetches = new SingleFlight<Secret>();

  /**
   * A cached token, or a new one. Concurrent callers share a request; it is aborted when the last of them gives up.
   * @param usable the credential; absent: anonymous
   * @throws TokenRefused, InvalidTokenResponse, and errors of the exchange
   */
  async function get(
    request: EndpointRequest,
    scheme: BearerScheme,
    usable: MatchedCredential | undefined,
    signal: AbortSignal,
  ): Promise<GrantedToken> {
    const id = idOf(request, scheme, usable);
    const known = tokens.get(id);
    if (known && clock.monotonic() < known.refreshAt) return { id, token: known.token, cached: true };
    const fetch = async (shared: AbortSignal): Promise<Secret> => {
      const { token, lastsMs } = await fetchToken({ ...request, credential: usable }, scheme, shared);
      tokens.set(id, { token, refreshAt: clock.monotonic() + lastsMs });
      return token;
    };
    return { id, token: await fetches.run(id, fetch, signal), cached: false };
  }

  /** Removes a token that the endpoint rejected, unless it has been replaced already. */
  function forget(granted: GrantedToken | undefined): void {
    if (granted && tokens.peek(granted.id)?.token === granted.token) tokens.delete(granted.id);
  }

  /** @throws TokenRefused, InvalidTokenResponse, and errors of the exchange */
  async function fetchToken(
    request: EndpointRequest,
    scheme: BearerScheme,
    signal: AbortSignal,
  ): Promise<BearerToken> {
    const credential = request.credential?.credential;
    const posted = credential && (await send(request, scheme, oauthExchange(scheme, credential), signal));
    const isAnswer = posted && (isSuccess(posted.status) || !knowsOnlyGet(posted.status, credential));
    const response = isAnswer ? posted : await send(request, scheme, getExchange(scheme, credential), signal);
    return tokenIn(response);
  }

  async function send(
    request: EndpointRequest,
    { registryIp }: BearerScheme,
    { headers: { authorization, ...headers }, ...exchange }: Exchange,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const { endpoint } = request;
    const isEndpoint = isSameServer(request.url, exchange.url);
    const step = {
      ...exchange,
      headers,
      ownHeaders: {
        ...tokenHeadersOf(request, exchange.url),
        ...(authorization !== undefined && { authorization }),
      },
      maxBytes: maxTokenBytes,
      tls: isEndpoint ? endpoint.tls : { ...endpoint.tls, client: [] },
      reach: isEndpoint ? endpointReach(endpoint) : targetReach(registryIp),
    };
    return await guardedSend(step, { ...request, purpose: 'token' }, signal);
  }

  return { get, forget };
}

type Exchange = Pick<HttpRequest, 'method' | 'url' | 'headers' | 'body'>;

function oauthExchange({ realm, service, scopes }: BearerScheme, credential: Credential): Exchange {
  const password = reveal(credential.password);
  // An empty user name makes the password an identity token.
  const grant: Record<string, string> =
    credential.username === ''
      ? { grant_type: 'refresh_token', refresh_token: password }
      : { grant_type: 'password', username: credential.username, password };
  const form = new URLSearchParams(grant);
  if (service !== '') form.set('service', service);
  if (scopes.length > 0) form.set('scope', scopes.join(' '));
  // Some token servers count by client.
  form.set('client_id', 'archwright');
  return {
    method: 'POST',
    url: realm,
    headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
    body: form.toString(),
  };
}

function getExchange({ realm, service, scopes }: BearerScheme, credential: Credential | undefined): Exchange {
  const url = new URL(realm);
  if (service !== '') url.searchParams.append('service', service);
  for (const scope of scopes) url.searchParams.append('scope', scope);
  return { method: 'GET', url, headers: credential ? { authorization: basic(credential) } : {} };
}

/** Statuses that reject the OAuth2 form itself; 405 counts only with a user name, as in containerd. */
function knowsOnlyGet(status: number, credential: Credential): boolean {
  return status === 400 || status === 401 || status === 404 || (status === 405 && credential.username !== '');
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
