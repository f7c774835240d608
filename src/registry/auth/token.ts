/**
 * Token requests (containerd `core/remotes/docker/authorizer.go`, `auth/fetch.go`; distribution
 * `spec/auth/token.md`, `oauth.md`): with a secret a POST in the OAuth2 form, and if the server does not
 * support that, a GET with Basic; without a secret an anonymous GET.
 */
import type { Credential } from '../../credentials/credential.ts';
import { reveal, secret, type Secret } from '../../telemetry/secret.ts';
import type { HttpResponse } from '../../http/client.ts';
import { InvalidDocument, parseObject, asObject } from '../../http/json.ts';

/** Token responses have one to four KiB; go-containerregistry has the same bound. */
export const maxTokenBytes = 64 * 1024;

export interface TokenRequest {
  /** Validated. */
  readonly realm: URL;
  readonly service: string;
  readonly scopes: readonly string[];
  /** An empty user name makes the password an identity token. Undefined: anonymous. */
  readonly credential?: Credential;
}

export interface TokenExchange {
  readonly method: 'GET' | 'POST';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A response of a token server other than success. */
export class TokenRefused extends Error {
  override readonly name = 'TokenRefused';
  readonly status: number;
  /** `Retry-After`, as written. */
  readonly retryAfter: string | undefined;
  constructor(status: number, retryAfter: string | undefined) {
    super(`the token server answered ${status}`);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

type Response = Pick<HttpResponse, 'status' | 'headers' | 'body'>;

/**
 * @param send one exchange with the token server; it follows no redirect of a POST
 * @param now wall clock, milliseconds
 * @throws TokenRefused, InvalidTokenResponse, and what `send` throws
 */
export async function fetchToken(
  request: TokenRequest,
  send: (exchange: TokenExchange) => Promise<Response>,
  now: () => number,
): Promise<BearerToken> {
  if (request.credential) {
    const response = await send(oauthExchange(request, request.credential));
    if (succeeded(response.status)) return read(response, now);
    if (!knowsOnlyGet(response.status, request.credential)) throw refused(response);
  }
  const response = await send(getExchange(request));
  if (!succeeded(response.status)) throw refused(response);
  return read(response, now);
}

function oauthExchange({ realm, service, scopes }: TokenRequest, credential: Credential): TokenExchange {
  const password = reveal(credential.password);
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

function getExchange({ realm, service, scopes, credential }: TokenRequest): TokenExchange {
  const url = new URL(realm);
  if (service !== '') url.searchParams.append('service', service);
  for (const scope of scopes) url.searchParams.append('scope', scope);
  return { method: 'GET', url, headers: credential ? { authorization: basic(credential) } : {} };
}

/** Statuses that reject the OAuth2 form itself; 405 counts only with a user name, as in containerd. */
function knowsOnlyGet(status: number, credential: Credential): boolean {
  return status === 400 || status === 401 || status === 404 || (status === 405 && credential.username !== '');
}

/** Value of an Authorization header. */
export function basic({ username, password }: Credential): string {
  return `Basic ${Buffer.from(`${username}:${reveal(password)}`).toString('base64')}`;
}

function succeeded(status: number): boolean {
  return status >= 200 && status < 300;
}

function refused({ status, headers }: Response): TokenRefused {
  return new TokenRefused(status, headers['retry-after']?.[0]);
}

function read(response: Response, now: () => number): BearerToken {
  try {
    return readTokenResponse(parseObject(response.body), now());
  } catch (error) {
    throw error instanceof InvalidDocument ? new InvalidTokenResponse(error.message) : error;
  }
}

/** The specification's default, and the shortest lifetime that it allows. */
const defaultLifetimeSeconds = 60;

/** No registry grants more than half a day; a longer figure would keep a token long after its revocation. */
const maxLifetimeSeconds = 24 * 60 * 60;

/** A token is renewed after this part of its lifetime, so that it does not expire on its way. */
const refreshShare = 0.9;

export interface BearerToken {
  readonly token: Secret;
  /** Milliseconds until a new token should be requested. */
  readonly lastsMs: number;
}

/** A response without a usable token. `message` holds nothing from the server. */
export class InvalidTokenResponse extends Error {
  override readonly name = 'InvalidTokenResponse';
}

/**
 * Reads a token response (distribution `spec/auth/token.md`). Lifetimes are bounded both ways, because a
 * server's figures and clock are not trusted.
 * @param receivedAt wall clock when the response was complete, milliseconds
 * @throws InvalidTokenResponse if there is no token, or one that cannot be a header value
 */
export function readTokenResponse(body: unknown, receivedAt: number): BearerToken {
  const members = asObject(body) ?? {};
  // If both members exist, containerd and go-containerregistry take access_token.
  const text = nonEmpty(members['access_token']) ?? nonEmpty(members['token']);
  if (text === undefined) throw new InvalidTokenResponse('no token');
  if (!/^[\x21-\x7e]+$/.test(text)) throw new InvalidTokenResponse('the token cannot be sent in a header');

  const expiresIn = members['expires_in'];
  const known = typeof expiresIn === 'number' && !Number.isNaN(expiresIn) ? expiresIn : 0;
  const lifetimeSeconds = Math.min(Math.max(known, defaultLifetimeSeconds), maxLifetimeSeconds);
  const issuedAt = instant(members['issued_at']);
  // A server's fast clock must not prolong a token.
  const start = issuedAt === undefined ? receivedAt : Math.min(issuedAt, receivedAt);
  // A server's slow clock (or our fast one) must not make tokens expire on arrival.
  const remaining = Math.max(start + lifetimeSeconds * 1000 - receivedAt, defaultLifetimeSeconds * 1000);
  return { token: secret(text, 'others'), lastsMs: remaining * refreshShare };
}

const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i;

function instant(text: unknown): number | undefined {
  if (typeof text !== 'string' || !rfc3339.test(text)) return undefined;
  const time = Date.parse(text);
  return Number.isNaN(time) ? undefined : time;
}

function nonEmpty(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
