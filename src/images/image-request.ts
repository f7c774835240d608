/** Requests for image facts on behalf of pods: how old an answer may be, and for whom. */
import type { ServiceAccountName } from '../credentials/credential.ts';
import type { ImageRequest, PullPolicy } from './facts/facts.ts';
import { createReferenceCache, shortNameOf } from './references/reference.ts';

/** Settings, in milliseconds. */
export interface CacheTimes {
  /** The node may have pulled the image this long ago. */
  readonly ifNotPresentCacheTime: number;
  /** Absent: each pod that pulls `Always` causes a lookup. */
  readonly pullAlwaysCacheTime?: number | undefined;
}

/**
 * For facts that refuse a pod or evict one. Controllers create a refused pod again within seconds; a person
 * needs longer to push an image.
 */
export const confirmedMs = 5000;

/** @returns milliseconds */
function usualAgeOf(pullPolicy: PullPolicy, times: CacheTimes): number {
  return pullPolicy === 'Always' ? (times.pullAlwaysCacheTime ?? 0) : times.ifNotPresentCacheTime;
}

/** Facts of any age will do: the cache answers with what it knows, and does not confirm it. */
export function ofAnyAge(request: ImageRequest): ImageRequest {
  return { ...request, maxAgeMs: Number.POSITIVE_INFINITY };
}

/** On whose behalf an image is looked up. */
export interface Requester {
  readonly namespace: string;
  readonly serviceAccount: ServiceAccountName | undefined;
  /** How old facts of tags may be, if less than usual. */
  readonly maxAgeMs?: number;
}

/** Makes the request for one image of a pod, without pull credentials. @throws InvalidReference */
export type RequestOf = (image: string, pullPolicy: PullPolicy, requester: Requester) => ImageRequest;

/**
 * @param times read for each request
 * @param serviceAccountTokens nodes have credentials by service account; if not, a lookup serves all accounts
 * @param resolvesShortNames nodes find the registries of short names; if not, these are names of `docker.io`
 */
export function createRequestOf(
  times: () => CacheTimes,
  serviceAccountTokens: boolean,
  resolvesShortNames: () => boolean = () => false,
): RequestOf {
  const parse = createReferenceCache();
  return (image, pullPolicy, { namespace, serviceAccount, maxAgeMs: mostMs = Number.POSITIVE_INFINITY }) => {
    const reference = parse(image);
    // A digest is immutable.
    const isTag = reference.digest === undefined;
    const maxAgeMs = isTag ? Math.min(mostMs, usualAgeOf(pullPolicy, times())) : Number.POSITIVE_INFINITY;
    const shortName = resolvesShortNames() ? shortNameOf(image) : undefined;
    const named = shortName === undefined ? {} : { shortName };
    const request = { image, reference, ...named, maxAgeMs, pullCredentials: [], namespace };
    return serviceAccountTokens && serviceAccount ? { ...request, serviceAccount } : request;
  };
}
