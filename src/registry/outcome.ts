/**
 * Statuses and failures become RegistryErrors, with a message on what to do next. Of several errors,
 * the ranks decide which one is reported.
 */
import type { MatchedCredential } from '../credentials/credential.ts';
import { InvalidDocument, TooManyValues } from '../http/json.ts';
import { RegistryError, type RegistryErrorCode } from './manifest-lookup.ts';
import { retryAfter } from '../http/client.ts';
import { InvalidChallenge } from './auth/challenge.ts';
import { TokenRefused, InvalidTokenResponse } from './auth/token.ts';
import { CircuitOpen } from './net/circuit-breaker.ts';
import { reveal } from '../telemetry/secret.ts';
import { TransportError } from '../http/transport-error.ts';

export interface Circumstances {
  readonly host: string;
  readonly repository: string;
  readonly credential: MatchedCredential | undefined;
  readonly missingCredential?: string | undefined;
  /** Whether the request carried no credential although there is one. */
  readonly isUnsent?: boolean;
}

/** A credential for people: `docker-config registry.corp (/var/lib/kubelet/config.json)`. */
export function credentialLabel(credential: MatchedCredential | undefined): string {
  return credential ? `${credential.source} ${credential.key} (${credential.origin})` : 'anonymous';
}

/** A plugin is unknown without the setting, although the kubelet uses it. */
export const forNodes =
  'give the pod a pull secret, the node a credential, or archwright the credential plugins of the node (kubeletConfig)';

const advice: ReadonlyMap<RegistryErrorCode, string> = new Map([
  ['not-found', 'check the name and the tag'],
  ['rate-limited', 'use credentials with a higher limit, or a mirror'],
  ['unavailable', 'check the registry and the network'],
]);

/** @param header `Retry-After` as written ¶ @param now wall clock, milliseconds */
export function statusError(
  status: number,
  about: Circumstances,
  header: string | undefined,
  now: number,
): RegistryError {
  const code = codeOf(status);
  const message = `${about.host}: ${status} for ${about.repository} ${withCredential(about)}: ${adviceFor(code, about)}`;
  const isAccepted = code === 'not-found' && about.credential !== undefined && !about.isUnsent;
  return new RegistryError(code, about.host, message, { retryAfterMs: retryAfter(header, now), isAccepted });
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

function withCredential({ credential, isUnsent }: Circumstances): string {
  return credential && !isUnsent
    ? `with the credential ${credentialLabel(credential)}`
    : 'without a credential';
}

function adviceFor(
  code: RegistryErrorCode,
  { credential, isUnsent, missingCredential }: Circumstances,
): string {
  if (credential && isUnsent && (code === 'unauthorized' || code === 'forbidden')) {
    return `the credential ${credentialLabel(credential)} was not sent: ${whyUnsent(credential)}`;
  }
  if (code === 'unauthorized') {
    return credential ? 'ask for a new password' : (missingCredential ?? forNodes);
  }
  if (code === 'forbidden') {
    if (credential) return 'ask for access to the repository';
    return missingCredential ?? 'the registry refuses anonymous access';
  }
  return advice.get(code) ?? 'the response cannot be used';
}

function whyUnsent({ credential }: MatchedCredential): string {
  const { username, password, isIdentityToken = false } = credential;
  const isNamed = username !== '' || isIdentityToken;
  if (isNamed && reveal(password) !== '') return 'the registry names no known way to log in';
  return `it has no ${isNamed ? 'password' : 'user name'}`;
}

export function registryError(error: unknown, about: Circumstances, now: number): RegistryError {
  if (error instanceof RegistryError) return error;
  if (error instanceof TransportError) return transportFailed(error, about);
  const prefix = `${about.host}: ${about.repository} ${withCredential(about)}`;
  if (error instanceof TokenRefused) {
    const { status } = error;
    const code = status === 429 || status >= 500 ? codeOf(status) : 'unauthorized';
    const retryAfterMs = retryAfter(error.retryAfter, now);
    const message = `${prefix}: ${error.message}: ${adviceFor(code, about)}`;
    return new RegistryError(code, about.host, message, { cause: error, retryAfterMs });
  }
  if (error instanceof InvalidChallenge || error instanceof InvalidTokenResponse) {
    const message = `${prefix}: no token: ${error.message}`;
    return new RegistryError('unavailable', about.host, message, { cause: error });
  }
  if (error instanceof InvalidDocument) {
    const message = `${about.host}: the document of ${about.repository} cannot be used: ${error.message}`;
    const code = error instanceof TooManyValues ? 'too-large' : 'unsupported-media-type';
    return new RegistryError(code, about.host, message, { cause: error });
  }
  return new RegistryError('unavailable', about.host, `${prefix}: an unexpected error`, { cause: error });
}

function transportFailed(error: TransportError, { host, repository }: Circumstances): RegistryError {
  const where = error.where === '' ? host : error.where;
  // The host that failed may be a proxy or a storage instead of the registry itself.
  const wanted = where === host ? repository : `${host}/${repository}`;
  const hint =
    error.failure === 'client-certificate'
      ? '; give the node one, for containerd in hosts.toml (`client`), for CRI-O in certs.d'
      : '';
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

/** Whether there was no response: another credential cannot change that, another endpoint can. */
export function isUnreachable(error: RegistryError): boolean {
  if (error instanceof CircuitOpen) return error.code === 'unavailable';
  return error.cause instanceof TransportError && (error.code === 'unavailable' || error.code === 'timeout');
}

/** The error with the highest rank helps most. */
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
 * The rank of an error: an unreachable endpoint < not found < any other status < too large, as in
 * containerd's resolver. One difference: if the last endpoint, the origin, is unreachable, an earlier
 * mirror's `not found` does not mean that the image is absent, so the unreachable origin has the higher rank.
 * @param isOrigin whether the endpoint was the last one, and its host has not answered as an earlier one
 */
export function rankOf(error: RegistryError, isOrigin: boolean): number {
  return isUnreachable(error) && !isOrigin ? 0 : (ranks.get(error.code) ?? 0);
}

/** A failed attempt at one endpoint with one credential. */
export interface FailedAttempt {
  readonly error: RegistryError;
  readonly rank: number;
  /** Index of the endpoint. */
  readonly endpoint: number;
  readonly credential: MatchedCredential | undefined;
}

/**
 * The error that helps most: of the highest rank, and the latest of those. A credential that an endpoint
 * accepted has seen that the image is absent, so refusals of other credentials there, and of earlier mirrors,
 * are only mentioned.
 */
export function mostHelpful(failures: readonly FailedAttempt[]): RegistryError | undefined {
  const seenAt = Math.max(...failures.map(({ error, endpoint }) => (error.isAccepted ? endpoint : -1)));
  const isMoot = ({ error, endpoint }: FailedAttempt): boolean => endpoint <= seenAt && isRefusal(error);
  const [best] = failures
    .filter((failure) => !isMoot(failure))
    .toReversed()
    .sort((a, b) => b.rank - a.rank);
  if (!best?.error.isAccepted) return best?.error;
  const refused = new Set(failures.filter(isMoot).map(({ credential }) => credentialLabel(credential)));
  const [first, ...others] = refused;
  if (first === undefined) return best.error;
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  const { code, where, message, isAccepted } = best.error;
  const all = `${message}; refused were: ${first}${more}`;
  return new RegistryError(code, where, all, { isAccepted, cause: best.error });
}

function isRefusal({ code }: RegistryError): boolean {
  return code === 'unauthorized' || code === 'forbidden';
}
