/**
 * Token requests (containerd `core/remotes/docker/authorizer.go`, `auth/fetch.go`; distribution `spec/auth/token.md`,
 * `oauth.md`): with a secret a POST in the OAuth2 form, and if the server does not support that, a GET with Basic; without a
 * secret an anonymous GET.
 */
import type { Credential } from '../../credentials/credential.ts';
import { reveal } from '../../telemetry/secret.ts';
import { InvalidDocument, parseObject } from '../../http/json.ts';
import { InvalidTokenResponse, readTokenResponse, type BearerToken } from './token-response.ts';

/** Token responses have one to four KiB; go-containerregistry has the same bound. */
export const maxTokenBytes = 64 * 1024;

/** Name of this client, for token servers that count by client. */
const clientId = 'archwright';

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
  readonly code = 'token-refused';
  readonly temporary = false;
  readonly status: number;
  /** `Retry-After`, as written. */
  readonly retryAfter?: string;
  constructor(status: number, retryAfter: string | undefined) {
    super(`the token server answered ${status}`);
    this.name = 'TokenRefused';
    this.status = status;
    if (retryAfter !== undefined) this.retryAfter = retryAfter;
  }
}

/** The part of a response that counts here. */
export interface TokenServerResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, readonly string[] | undefined>>;
  readonly body: Buffer;
}

/**
 * Requests a token.
 * @param send one exchange with the token server; it follows no redirect of a POST
 * @param now wall clock, milliseconds
 * @throws TokenRefused, InvalidTokenResponse, and what `send` throws
 */
export async function fetchToken(
  request: TokenRequest,
  send: (exchange: TokenExchange) => Promise<TokenServerResponse>,
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
  form.set('client_id', clientId);
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
export function basic(credential: Credential): string {
  const text = `${credential.username}:${reveal(credential.password)}`;
  return `Basic ${Buffer.from(text).toString('base64')}`;
}

function succeeded(status: number): boolean {
  return status >= 200 && status < 300;
}

function refused({ status, headers }: TokenServerResponse): TokenRefused {
  return new TokenRefused(status, headers['retry-after']?.[0]);
}

function read(response: TokenServerResponse, now: () => number): BearerToken {
  try {
    return readTokenResponse(parseObject(response.body), now());
  } catch (error) {
    throw error instanceof InvalidDocument ? new InvalidTokenResponse(error.message) : error;
  }
}
