/**
 * The response of a token server. Source: distribution `spec/auth/token.md`. Lifetimes are bounded both ways, because a
 * server's figures and clock are not trusted.
 */
import { asObject } from '../../http/json.ts';
import { secret, type Secret } from '../../telemetry/secret.ts';

/** The specification's default, and the shortest lifetime that it allows. */
export const defaultLifetimeSeconds = 60;

/** No registry grants more than half a day; a longer figure would keep a token long after its revocation. */
export const maxLifetimeSeconds = 24 * 60 * 60;

/** A token is renewed after this part of its lifetime, so that it does not expire on its way. */
const refreshShare = 0.9;

export interface BearerToken {
  readonly token: Secret;
  readonly lifetimeSeconds: number;
  /** Start of the lifetime: the server's `issued_at`, or the arrival of the response. */
  readonly base: 'issued_at' | 'received';
  /** Wall clock, milliseconds. The token may be used up to and including this moment. */
  readonly expiresAt: number;
  /** Wall clock, milliseconds. After this moment a new token should be requested. */
  readonly refreshAt: number;
}

/** A response without a usable token. `message` holds nothing from the server. */
export class InvalidTokenResponse extends Error {
  readonly code = 'invalid-token-response';
  readonly temporary = false;
  constructor(message: string) {
    super(message);
    this.name = 'InvalidTokenResponse';
  }
}

/**
 * Reads a token response.
 * @param body the parsed JSON
 * @param receivedAt wall clock when the response was complete, milliseconds
 * @throws InvalidTokenResponse if there is no token, or one that cannot be a header value
 */
export function readTokenResponse(body: unknown, receivedAt: number): BearerToken {
  const members = asObject(body) ?? {};
  // If both members exist, containerd and go-containerregistry take access_token.
  const text = nonEmpty(members['access_token']) ?? nonEmpty(members['token']);
  if (text === undefined) throw new InvalidTokenResponse('no token');
  if (!/^[\x21-\x7e]+$/.test(text)) throw new InvalidTokenResponse('the token cannot be sent in a header');

  const lifetimeSeconds = lifetime(members['expires_in']);
  const issuedAt = instant(members['issued_at']);
  // A server whose clock is ahead must not make a token last longer than from now on.
  const start = issuedAt === undefined ? receivedAt : Math.min(issuedAt, receivedAt);
  // A server whose clock is behind (or ours ahead) must not make every token expired on arrival.
  const remaining = Math.max(start + lifetimeSeconds * 1000 - receivedAt, defaultLifetimeSeconds * 1000);
  return {
    token: secret(text),
    lifetimeSeconds,
    base: issuedAt === undefined ? 'received' : 'issued_at',
    expiresAt: receivedAt + remaining,
    refreshAt: receivedAt + remaining * refreshShare,
  };
}

function lifetime(expiresIn: unknown): number {
  if (typeof expiresIn !== 'number' || Number.isNaN(expiresIn)) return defaultLifetimeSeconds;
  return Math.min(Math.max(expiresIn, defaultLifetimeSeconds), maxLifetimeSeconds);
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
