/**
 * Authentication with an endpoint (containerd `core/remotes/docker/authorizer.go`): a request goes out without credentials
 * until the endpoint challenges it, then with Basic or with a Bearer token. What an endpoint wanted is remembered, so
 * that the next request brings it along and costs one exchange instead of three.
 *
 * A credential is sent to the endpoint itself or to its validated realm, and only where the endpoint accepts
 * credentials. A host that an endpoint redirected to gets none, whatever it answers.
 */
import type { MatchedCredential } from '../../credentials/credential.ts';
import { headersId } from '../../credentials/identity.ts';
import type { Clock } from '../../async/clock.ts';
import { reveal, type Secret } from '../../telemetry/secret.ts';
import type { Endpoint, EndpointHeader } from '../endpoints/endpoint.ts';
import type { Exchanger, Reason } from '../net/exchange.ts';
import { isLoginHeader } from '../../http/login-headers.ts';
import { credentialLabel } from '../outcome.ts';
import type { Attempt } from '../lookup.ts';
import { endpointReach, targetReach, type AddressPolicy } from '../../http/reach.ts';
import { followRedirects, type FinalAnswer } from '../net/redirect.ts';
import { askToken, basic, maxTokenBytes, type TokenExchange } from './token.ts';
import { createTokenCache, type TokenKey } from './token-cache.ts';
import type { HttpResponse } from '../../http/client.ts';
import {
  createChallengeCache,
  sameScopes,
  authSchemeOf,
  type BearerScheme,
  type AuthScheme,
} from './challenge-cache.ts';

/** One request of a question. */
export interface Ask {
  readonly method: 'GET' | 'HEAD';
  readonly url: URL;
  readonly purpose: Attempt['purpose'];
  readonly accept: string;
  readonly maxBytes: number;
  readonly endpoint: Endpoint;
  readonly repository: string;
  /** Only where the endpoint accepts credentials. */
  readonly credential: MatchedCredential | undefined;
  readonly trace: ((attempt: Attempt) => void) | undefined;
}

export interface AuthenticatedAnswer extends FinalAnswer {
  /** Whether the credential took part; an endpoint that asks for none gets none. */
  readonly credentialUsed: boolean;
}

export interface Authenticator {
  /** @returns the answer; a 401 where what could be offered was not enough */
  send(ask: Ask, signal: AbortSignal): Promise<AuthenticatedAnswer>;
  /** Forgets tokens and what endpoints wanted. */
  clear(): void;
}

interface Offer {
  readonly header: string | undefined;
  readonly credentialUsed: boolean;
  readonly token?: { readonly key: TokenKey; readonly token: Secret; readonly remembered: boolean };
}

const nothing: Offer = { header: undefined, credentialUsed: false };

export function createAuthenticator(parts: {
  readonly exchanger: Exchanger;
  readonly clock: Clock;
  readonly policy: AddressPolicy;
}): Authenticator {
  const { exchanger, clock, policy } = parts;
  const tokens = createTokenCache(clock);
  const wishes = createChallengeCache();

  function send(ask: Ask, offer: Offer, signal: AbortSignal): Promise<FinalAnswer> {
    const { endpoint } = ask;
    return followRedirects(
      {
        method: ask.method,
        url: ask.url,
        headers: { accept: ask.accept },
        ownHeaders: {
          ...headersOf(endpoint.headers),
          ...(offer.header === undefined ? {} : { authorization: offer.header }),
        },
        maxBytes: ask.maxBytes,
        tls: endpoint.tls,
        reach: endpointReach(endpoint, policy),
        ...(endpoint.dialTimeoutMs === undefined ? {} : { dialTimeoutMs: endpoint.dialTimeoutMs }),
      },
      policy,
      (step) => exchanger.send(step, reasonOf(ask, ask.purpose, offer.credentialUsed), signal),
    );
  }

  async function fulfil(ask: Ask, wish: AuthScheme, signal: AbortSignal): Promise<Offer> {
    const usable = usableCredential(ask.credential);
    if (wish.scheme === 'basic') {
      // containerd refuses Basic without both; an empty half is no credential.
      if (!usable || usable.credential.username === '') return nothing;
      return { header: basic(usable.credential), credentialUsed: true };
    }
    const key: TokenKey = {
      registry: `${ask.url.protocol}//${ask.url.host}`,
      realm: wish.realm.href,
      service: wish.service,
      scopes: wish.scopes,
      credential: usable?.id ?? 'anonymous',
      headers: headersKey(ask, wish),
    };
    const { token, remembered } = await tokens.get(key, signal, (shared) =>
      askToken(
        { ...wish, ...(usable ? { credential: usable.credential } : {}) },
        (exchange) => sendToken(ask, wish, exchange, usable !== undefined, shared),
        () => clock.now(),
      ),
    );
    return {
      header: `Bearer ${reveal(token)}`,
      credentialUsed: usable !== undefined,
      token: { key, token, remembered },
    };
  }

  function sendToken(
    ask: Ask,
    wish: BearerScheme,
    exchange: TokenExchange,
    credentialUsed: boolean,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const { endpoint } = ask;
    const same = isSameServer(ask, exchange.url);
    const { authorization, ...headers } = exchange.headers;
    const ownHeaders = {
      ...headersForTokens(endpoint, same),
      ...(authorization === undefined ? {} : { authorization }),
    };
    const request = {
      method: exchange.method,
      url: exchange.url,
      headers,
      maxBytes: maxTokenBytes,
      tls: same ? endpoint.tls : { ...endpoint.tls, client: [] },
      reach: same ? endpointReach(endpoint, policy) : targetReach(wish.registryIp, policy),
      ...(exchange.body === undefined ? {} : { body: exchange.body }),
    };
    const reason = reasonOf(ask, 'token', credentialUsed);
    // A redirected POST would carry the password to wherever the redirect leads.
    if (exchange.method === 'POST') {
      return exchanger.send({ ...request, headers: { ...headers, ...ownHeaders } }, reason, signal);
    }
    return followRedirects({ ...request, ownHeaders }, policy, (step) =>
      exchanger.send(step, reason, signal),
    );
  }

  return {
    send: async (ask, signal) => {
      const planned = wishes.recall(ask);
      const first = planned ? await fulfil(ask, planned, signal) : nothing;
      const answer = await send(ask, first, signal);
      if (answer.status !== 401 || answer.moved) return { ...answer, credentialUsed: first.credentialUsed };
      if (first.token) tokens.forget(first.token.key, first.token.token);
      const wish = authSchemeOf(ask, answer.headers['www-authenticate'] ?? [], answer.remoteAddress);
      if (!wish) return { ...answer, credentialUsed: first.credentialUsed };
      wishes.learn(ask, wish);
      if (!worthAnother(first, wish)) return { ...answer, credentialUsed: first.credentialUsed };
      const second = await fulfil(ask, wish, signal);
      if (second.header === undefined) return { ...answer, credentialUsed: first.credentialUsed };
      const last = await send(ask, second, signal);
      if (last.status === 401 && second.token) tokens.forget(second.token.key, second.token.token);
      return { ...last, credentialUsed: second.credentialUsed };
    },
    clear: () => {
      tokens.clear();
      wishes.clear();
    },
  };
}

/** The same offer a second time would be the same answer; a remembered token may have been revoked. */
function worthAnother(first: Offer, wish: AuthScheme): boolean {
  if (first.header === undefined) return true;
  if (wish.scheme === 'basic') return first.token !== undefined;
  if (!first.token || first.token.remembered) return true;
  const { key } = first.token;
  return (
    !sameScopes(key.scopes, wish.scopes) || key.realm !== wish.realm.href || key.service !== wish.service
  );
}

/**
 * What of a credential can be offered. The kubelet hands a password without user name to containerd, which then asks
 * anonymously; only containerd's own configuration and our own files mean an identity token by it.
 */
function usableCredential(credential: MatchedCredential | undefined): MatchedCredential | undefined {
  if (!credential || reveal(credential.credential.password) === '') return undefined;
  const named = credential.credential.username !== '';
  return named || credential.source === 'containerd' || credential.source === 'registry-toml'
    ? credential
    : undefined;
}

function isSameServer({ url }: Ask, realm: URL): boolean {
  return realm.host === url.host && realm.protocol === url.protocol;
}

function headersKey(ask: Ask, { realm }: BearerScheme): string {
  const headers = headersForTokens(ask.endpoint, isSameServer(ask, realm));
  return Object.keys(headers).length === 0 ? '' : headersId(headers);
}

/** A header that logs in stays with its host; there it opens the token server too. */
function headersForTokens({ tokenHeaders = [] }: Endpoint, same: boolean): Record<string, string> {
  return headersOf(same ? tokenHeaders : tokenHeaders.filter(({ name }) => !isLoginHeader(name)));
}

/** By name; several values are one list, which HTTP takes for the same as several lines. */
function headersOf(headers: readonly EndpointHeader[]): Record<string, string> {
  const found = new Map<string, string>();
  for (const { name, value } of headers) {
    const key = name.toLowerCase();
    const before = found.get(key);
    const separator = key === 'cookie' ? '; ' : ', ';
    found.set(key, before === undefined ? reveal(value) : `${before}${separator}${reveal(value)}`);
  }
  return Object.fromEntries(found);
}

function reasonOf(ask: Ask, purpose: Attempt['purpose'], credentialUsed: boolean): Reason {
  const credential = credentialUsed ? ask.credential : undefined;
  return {
    purpose,
    credential: credentialLabel(credential),
    credentialId: credential?.id ?? 'anonymous',
    // A token server answers for itself.
    ...(purpose !== 'token' && ask.endpoint.namespaceParameter && { behind: ask.endpoint.namespace }),
    trace: ask.trace,
  };
}
