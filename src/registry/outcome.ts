/**
 * From what happened to what is said: statuses and failures become RegistryErrors with a message that tells a person what
 * to do, and of several errors the one that counts is chosen.
 */
import type { MatchedCredential } from '../credentials/credential.ts';
import { InvalidDocument } from '../http/json.ts';
import { RegistryError, type RegistryErrorCode } from './lookup.ts';
import { retryAfter } from '../http/retry-after.ts';
import { InvalidChallenge } from './auth/scope.ts';
import { TokenRefused } from './auth/token.ts';
import { InvalidTokenResponse } from './auth/token-response.ts';
import { TransportError } from '../http/transport-error.ts';

/** The host is left alone for now; nothing was asked. */
export class LeftAlone extends Error {
  readonly code = 'left-alone';
  readonly temporary = true;
  readonly where: string;
  readonly retryAfterMs: number;
  /** Whether the host asked for it with 429. */
  readonly rateLimited: boolean;
  constructor(where: string, retryAfterMs: number, rateLimited: boolean) {
    super(`${where} is left alone for ${Math.ceil(retryAfterMs / 1000)} s`);
    this.name = 'LeftAlone';
    this.where = where;
    this.retryAfterMs = retryAfterMs;
    this.rateLimited = rateLimited;
  }
}

/** What an error is about. */
export interface Circumstances {
  readonly host: string;
  readonly repository: string;
  readonly credential: MatchedCredential | undefined;
}

/** A credential for people: `docker-config registry.corp (/var/lib/kubelet/config.json)`. */
export function credentialLabel(credential: MatchedCredential | undefined): string {
  return credential ? `${credential.source} ${credential.key} (${credential.origin})` : 'anonymous';
}

const advice: ReadonlyMap<RegistryErrorCode, string> = new Map([
  ['not-found', 'check the name and the tag'],
  ['rate-limited', 'use credentials with a higher limit, or a mirror'],
  ['unavailable', 'check the registry and the way to it'],
]);

/**
 * The error of an HTTP status that is no success.
 * @param header `Retry-After` as written
 * @param now wall clock, milliseconds
 */
export function statusError(
  status: number,
  about: Circumstances,
  header: string | undefined,
  now: number,
): RegistryError {
  const code = codeOf(status);
  const pause = retryAfter(header, now);
  const message = `${about.host}: ${status} for ${about.repository} ${withCredential(about)}: ${adviceFor(code, about)}`;
  return new RegistryError(code, about.host, message, pause === undefined ? {} : { retryAfterMs: pause });
}

function codeOf(status: number): RegistryErrorCode {
  if (status === 401) return 'unauthorized';
  if (status === 403 || status === 451) return 'forbidden';
  if (status === 404 || status === 410) return 'not-found';
  if (status === 408) return 'timeout';
  if (status === 429) return 'rate-limited';
  if (status === 406 || status === 415) return 'unsupported-media-type';
  return 'unavailable';
}

function withCredential({ credential }: Circumstances): string {
  return credential ? `with the credential ${credentialLabel(credential)}` : 'without a credential';
}

function adviceFor(code: RegistryErrorCode, { credential }: Circumstances): string {
  if (code === 'unauthorized') {
    return credential ? 'ask for a new password' : 'give the pod a pull secret, or the node a credential';
  }
  if (code === 'forbidden') {
    return credential ? 'ask for access to the repository' : 'the registry refuses anonymous access';
  }
  return advice.get(code) ?? 'the answer cannot be used';
}

/** Makes a RegistryError of whatever was thrown on the way. */
export function registryError(error: unknown, about: Circumstances, now: number): RegistryError {
  if (error instanceof RegistryError) return error;
  if (error instanceof TransportError) return transportFailed(error, about);
  if (error instanceof LeftAlone) {
    const code = error.rateLimited ? 'rate-limited' : 'unavailable';
    return new RegistryError(code, error.where, `${error.message}, because it failed or asked for it`, {
      retryAfterMs: error.retryAfterMs,
      cause: error,
    });
  }
  const prefix = `${about.host}: ${about.repository} ${withCredential(about)}`;
  if (error instanceof TokenRefused) {
    const { status } = error;
    const code = status === 429 || status >= 500 ? codeOf(status) : 'unauthorized';
    const pause = retryAfter(error.retryAfter, now);
    return new RegistryError(code, about.host, `${prefix}: ${error.message}: ${adviceFor(code, about)}`, {
      cause: error,
      ...(pause === undefined ? {} : { retryAfterMs: pause }),
    });
  }
  if (error instanceof InvalidChallenge || error instanceof InvalidTokenResponse) {
    return new RegistryError('unavailable', about.host, `${prefix}: no token: ${error.message}`, {
      temporary: error instanceof InvalidTokenResponse,
      cause: error,
    });
  }
  if (error instanceof InvalidDocument) {
    const message = `${about.host}: the document of ${about.repository} cannot be used: ${error.message}`;
    return new RegistryError('unsupported-media-type', about.host, message, { cause: error });
  }
  return new RegistryError('unavailable', about.host, `${prefix}: an unexpected fault`, { cause: error });
}

function transportFailed(error: TransportError, { host, repository }: Circumstances): RegistryError {
  const where = error.where === '' ? host : error.where;
  // The proxy or the storage that failed says nothing of the registry it was asked for.
  const wanted = where === host ? repository : `${host}/${repository}`;
  const hint = error.failure === 'client-certificate' ? '; give the node one as `client` in hosts.toml' : '';
  const message = `${where}: ${error.message}${hint} (for ${wanted})`;
  return new RegistryError(transportCode(error), where, message, { cause: error });
}

function transportCode({ failure }: TransportError): RegistryErrorCode {
  if (failure === 'refused-address') return 'forbidden';
  if (failure === 'too-large') return 'too-large';
  if (failure === 'encoded') return 'unsupported-media-type';
  if (failure === 'aborted' || failure.endsWith('-timeout')) return 'timeout';
  return 'unavailable';
}

/** Whether nobody answered: another credential cannot change that, another endpoint can. */
export function isUnreachable(error: RegistryError): boolean {
  if (error.cause instanceof LeftAlone) return !error.cause.rateLimited;
  return error.cause instanceof TransportError && (error.code === 'unavailable' || error.code === 'timeout');
}

/** A pod can be helped most by the error with the highest rank. */
const ranks: ReadonlyMap<RegistryErrorCode, number> = new Map([
  ['not-found', 1],
  ['unauthorized', 2],
  ['forbidden', 3],
  ['not-an-image', 4],
  ['unsupported-media-type', 4],
  ['digest-mismatch', 4],
  ['unavailable', 5],
  ['timeout', 5],
  ['rate-limited', 6],
  ['too-large', 7],
]);

/**
 * Which of several errors counts: an unreachable endpoint < not found < any other status < too large, as in containerd's
 * resolver. One thing differs: where the last endpoint, the origin, is unreachable, an earlier mirror's `not found` does not
 * mean that the image is absent, so then the unreachable origin counts more.
 * @param last whether the endpoint was the last one
 */
export function rankOf(error: RegistryError, last: boolean): number {
  return isUnreachable(error) && !last ? 0 : (ranks.get(error.code) ?? 0);
}
