/**
 * One image in one credential scope: its last good answer, and the failure of the last lookup if that failed.
 * Both say what a request gets: facts that are young enough; else, while the failure counts, the older facts
 * marked as stale, or the failure; else a lookup.
 */
import { backOffMs, type Clock } from '../../async/clock.ts';
import type { FactsError, FactsErrorCode, ImageFacts, ImageRequest } from '../facts/facts.ts';
import type { Reference } from '../references/reference.ts';

/** What thousands of images have in common. An error is only `not-an-image`, which holds as long as the digest. */
export type Details = Pick<ImageFacts, 'platforms' | 'mediaType' | 'credentialSource' | 'endpoint' | 'error'>;

export interface Known {
  readonly digest: string;
  readonly details: Details;
  /** When a registry confirmed them (monotonic); negative if before the process started. */
  readonly at: number;
  /** The same as a date. */
  readonly confirmedAt: string;
}

export interface LookupFailure {
  readonly error: FactsError;
  /** Failures in a row. */
  readonly attempts: number;
  readonly retryAt: number;
}

export interface Entry {
  readonly key: string;
  /** The namespace for which it was looked up. */
  readonly owner: string;
  /** Estimated memory. */
  readonly bytes: number;
  /** Whether a request used it since it was added, or spared from eviction (`entries.ts`). */
  isUsed: boolean;
  readonly known: Known | undefined;
  readonly failure: LookupFailure | undefined;
  /** Its tag drifted at this time: older facts do not count. */
  readonly driftedAt: number;
}

/** Whether the last lookup failed so recently that no other is made. */
export function isFailing({ failure }: Entry, now: number): boolean {
  return failure !== undefined && now < failure.retryAt;
}

/** Not found and refused: the image may be pushed, or access be granted, meanwhile. */
const answerMs = 30_000;
/** One request per minute and image does not burden a registry, and recovery is noticed soon. */
const backOff = { firstMs: 1000, mostMs: 60_000 };
/** An agent's node may be compromised, and a pod should not wait for hours. */
const longestPauseMs = 15 * 60_000;
/** A message is for people; more than this is not read. */
const maxMessageLength = 500;

const answers: ReadonlySet<FactsErrorCode> = new Set<FactsErrorCode>([
  'not-found',
  'unauthorized',
  'forbidden',
  'invalid-reference',
]);

/** Whether a failure without credentials (refused, hidden, limited per account) says nothing about this request. */
export function isForOthers(shared: Entry | undefined, request: ImageRequest): boolean {
  const code = shared?.failure?.error.code;
  if (code === undefined || scopeOf(request) === sharedScope) return false;
  return answers.has(code) || code === 'rate-limited';
}

/**
 * The failure after another one. The next lookup is made when the source says (`retryAfterMs`; agents always
 * say it), else after a fixed time for an answer about the image, else by exponential back-off with jitter,
 * so that images that failed together are not looked up together.
 */
export function nextFailure(
  previous: LookupFailure | undefined,
  { retryAfterMs, ...error }: FactsError,
  clock: Pick<Clock, 'monotonic' | 'random'>,
): LookupFailure {
  const now = clock.monotonic();
  const isRepeated = previous !== undefined && now < previous.retryAt + backOff.mostMs;
  const attempts = isRepeated ? previous.attempts + 1 : 1;
  const usualMs = answers.has(error.code) ? answerMs : backOffMs(backOff, attempts, clock.random);
  const pauseMs = retryAfterMs === undefined ? usualMs : Math.max(retryAfterMs, backOff.firstMs);
  return {
    error: { ...error, message: compact(error.message.slice(0, maxMessageLength)) },
    attempts,
    retryAt: now + Math.min(longestPauseMs, pauseMs),
  };
}

/** Facts from files and agents say when they were confirmed; longer ago is the same as this. */
const longestAgeMs = 365 * 86_400_000;

/**
 * What facts tell as long as their digest holds: platforms, or that it is no image.
 * @param vouchedMs the source promises that they are at most so old. Clocks of nodes differ, so this counts
 * @returns `undefined` for other failures, for overrides, and for another digest than the image names
 */
export function knownOf(
  { digest, platforms, credentialSource, endpoint, error, source, ...facts }: ImageFacts,
  { digest: named = digest }: Pick<Reference, 'digest'>,
  vouchedMs: number,
  clock: Pick<Clock, 'now' | 'monotonic'>,
): Known | undefined {
  if (digest === undefined || digest !== named || source === 'override') return undefined;
  if (error && error.code !== 'not-an-image') return undefined;
  const saidMs = clock.now() - Date.parse(facts.confirmedAt);
  const promisedMs = source === 'registry' ? 0 : Math.min(vouchedMs, longestAgeMs);
  const mostMs = facts.stale ? longestAgeMs : promisedMs;
  const ageMs = Number.isNaN(saidMs) ? mostMs : Math.min(mostMs, Math.max(0, saidMs));
  const at = clock.monotonic() - ageMs;
  const confirmedAt = new Date(clock.now() - ageMs).toISOString();
  const mediaType = facts.mediaType !== undefined && { mediaType: facts.mediaType };
  const kept = error && { error: { code: error.code, message: error.message } };
  const details = { platforms, ...mediaType, credentialSource, endpoint, ...kept };
  return { digest, details, at, confirmedAt };
}

/** @param image as the request writes it */
export function factsOf({ digest, details, confirmedAt }: Known, image: string, stale: boolean): ImageFacts {
  return { image, digest, ...details, source: 'memory', confirmedAt, stale };
}

/**
 * A copy of a text that stands alone. A text that was cut out of a larger one keeps all of that alive (a
 * digest cut from a 4 MiB manifest), and one that was put together keeps its parts.
 */
export function compact(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8');
}

/**
 * Credential scopes: who may see an entry. Facts that a registry gives anonymously or for a node's credentials
 * serve every pod. Others serve pods with the same pull credentials and, if nodes use it, service account.
 */
export const sharedScope = '';

/**
 * The key of an image in any spelling: `docker.io/library/nginx:1.25`, or its digest, if named. A short name
 * that nodes resolve by themselves has its own key, with a blank: its facts are not passed on, because
 * another node may resolve it in another way.
 */
export function keyOf({ reference, shortName }: Pick<ImageRequest, 'reference' | 'shortName'>): string {
  const { text, repository } = reference;
  return shortName === undefined ? text : `short-name ${shortName}${text.slice(repository.length)}`;
}

/** References and credential ids have no blank and no comma. */
export function scopedKey(key: string, scope: string): string {
  return scope === sharedScope ? key : `${key} ${scope}`;
}

/** The scope of a request. A registry accepts any of its credentials, in any order. */
export function scopeOf({
  pullCredentials,
  serviceAccount: account,
}: Pick<ImageRequest, 'pullCredentials' | 'serviceAccount'>): string {
  const ids = [...new Set(pullCredentials.map(({ id }) => id))].sort();
  // Ids have no colon.
  if (account !== undefined) ids.push(`service-account:${account.namespace}/${account.name}`);
  return ids.join(',');
}

/** The request of a pod without pull secrets and service account; its facts can be shared. */
export function withoutCredentials(ofPod: ImageRequest): ImageRequest {
  const { serviceAccount: _, ...request } = ofPod;
  return { ...request, pullCredentials: [] };
}

/** Namespaces wait for their own places, and an agent's answer depends on the age. */
export function keyOfLookup(request: ImageRequest): string {
  const { namespace = '', maxAgeMs } = request;
  return [keyOf(request), scopeOf(request), namespace, maxAgeMs].join(' ');
}
