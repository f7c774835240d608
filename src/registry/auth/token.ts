/** Responses of token servers (distribution `spec/auth/token.md`). */
import { reveal, secret, type Secret } from '../../telemetry/secret.ts';
import type { Credential } from '../../credentials/credential.ts';
import type { HttpResponse } from '../../http/client.ts';
import { InvalidDocument, parseObject, type JsonObject } from '../../http/json.ts';

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

/** @throws TokenRefused, InvalidTokenResponse */
export function tokenIn({ status, headers, body }: HttpResponse): BearerToken {
  if (!isSuccess(status)) throw new TokenRefused(status, headers['retry-after']?.[0]);
  try {
    return readTokenResponse(parseObject(body));
  } catch (error) {
    throw error instanceof InvalidDocument ? new InvalidTokenResponse(error.message) : error;
  }
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** Value of an Authorization header. */
export function basic({ username, password }: Credential): string {
  return `Basic ${Buffer.from(`${username}:${reveal(password)}`).toString('base64')}`;
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
 * The lifetime counts from now: `issued_at` is by the server's clock, and a token that ends sooner is replaced when
 * the registry rejects it. It is bounded both ways, because a server's figures are not trusted.
 * @throws InvalidTokenResponse if there is no token, or one that cannot be a header value
 */
export function readTokenResponse(members: JsonObject): BearerToken {
  // If both members exist, containerd and go-containerregistry take access_token.
  const text = nonEmpty(members['access_token']) ?? nonEmpty(members['token']);
  if (text === undefined) throw new InvalidTokenResponse('no token');
  if (!/^[\x21-\x7e]+$/.test(text)) throw new InvalidTokenResponse('the token cannot be sent in a header');

  const expiresIn = members['expires_in'];
  const known = typeof expiresIn === 'number' && !Number.isNaN(expiresIn) ? expiresIn : 0;
  const lifetimeSeconds = Math.min(Math.max(known, defaultLifetimeSeconds), maxLifetimeSeconds);
  return { token: secret(text, 'others'), lastsMs: lifetimeSeconds * 1000 * refreshShare };
}

function nonEmpty(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
