/**
 * Image facts: platforms and origin of one image. They travel in exactly this shape in the agent's API
 * (version 1), on the command line (`inspect --output json`) and inside the program.
 */
import type {
  CredentialSourceName,
  MatchedCredential,
  ServiceAccountName,
} from '../../credentials/credential.ts';
import { registryErrorCodes, type Attempt } from '../../registry/manifest-lookup.ts';
import type { FullPlatform } from '../../names/platform.ts';
import type { Amd64Level } from '../../nodes/node-class.ts';
import { type Reference, createReferenceCache, shortNameOf } from '../references/reference.ts';

export const factsErrorCodes = ['invalid-reference', ...registryErrorCodes] as const;
export type FactsErrorCode = (typeof factsErrorCodes)[number];

export interface FactsError {
  readonly code: FactsErrorCode;
  readonly message: string;
  readonly retryAfterMs?: number;
  /** Refused, and a credential plugin of the node gave no usable credential for the image. */
  readonly cause?: 'plugin';
  /** Tells the author of a pod the cause: wrong pull secrets, or no agent that answers. Agents never send it. */
  readonly hint?: string;
}

/** The hint without any known agent. */
export const noAgentsHint = 'no agents are known; see archwright status';

export interface ImageFacts {
  /** The image as requested. */
  readonly image: string;
  readonly digest?: string;
  readonly mediaType?: string;
  /** Normalized, in the index's order, without attestations and duplicates. Empty for artifacts, errors. */
  readonly platforms: readonly FullPlatform[];
  /** A registry just now, memory, or `[[imageOverrides]]`. */
  readonly source: 'registry' | 'memory' | 'override';
  /** `anonymous` also without a request. `service-account`: holds only for pods of that account. */
  readonly credentialSource: CredentialSourceName;
  /** Host of the endpoint that answered; empty where none did. */
  readonly endpoint: string;
  /** When a registry last confirmed them, RFC 3339. An answer without a request has the time it was given. */
  readonly confirmedAt: string;
  /** The last lookup failed; these are older facts. */
  readonly stale: boolean;
  /** Architectures removed for one pod after exec format errors there; never in the API. */
  readonly brokenOn?: readonly string[];
  /** The level of x86-64 that its programs need, beside the variants; never in the API. */
  readonly requiredLevel?: Amd64Level;
  readonly error?: FactsError;
}

/** Whether facts depend on the credentials of a pod, so that they are never shared. */
export function isOfPod({ credentialSource }: ImageFacts): boolean {
  return credentialSource === 'pull-secret' || credentialSource === 'service-account';
}

export type PullPolicy = 'Always' | 'IfNotPresent' | 'Never';

/** One image to learn about, for one pod. */
export interface ImageRequest {
  /** The text in the pod. */
  readonly image: string;
  readonly reference: Reference;
  /**
   * The name without tag and digest, if it names no registry and nodes may find another one than
   * `docker.io` for it (CRI-O).
   */
  readonly shortName?: string;
  /** How old an answer may be, milliseconds. Infinity: any age. */
  readonly maxAgeMs: number;
  /** Credentials of the pod's pull secrets that match the image's repository, best first. */
  readonly pullCredentials: readonly MatchedCredential[];
  /** The pod's. Namespaces share the places for lookups fairly. */
  readonly namespace?: string;
  /** The pod's, where it is known. Only some nodes have credentials that depend on it. */
  readonly serviceAccount?: ServiceAccountName;
}

export interface LookupOptions {
  readonly signal: AbortSignal;
  /** Facts to confirm: if the digest is still the same, they are returned as confirmed now. */
  readonly known?: ImageFacts;
  readonly trace?: (attempt: Attempt) => void;
}

/** A source of image facts: registries or the fleet. A failure is an answer (`error`), no exception. */
export interface ImageFactsSource {
  lookup(request: ImageRequest, options: LookupOptions): Promise<ImageFacts>;
}

/** Messages quote names, which may be long; `readFacts` refuses more than 1,024 characters. */
const maxMessageLength = 1000;

/** Facts with an error; by default from `registry`, as `anonymous`, without an endpoint. @param nowMs wall clock */
export function failedFacts(
  image: string,
  error: FactsError,
  nowMs: number,
  origin: Partial<Pick<ImageFacts, 'source' | 'credentialSource' | 'endpoint'>> = {},
): ImageFacts {
  return {
    image,
    platforms: [],
    source: 'registry',
    credentialSource: 'anonymous',
    endpoint: '',
    ...origin,
    confirmedAt: new Date(nowMs).toISOString(),
    stale: false,
    error: { ...error, message: error.message.slice(0, maxMessageLength) },
  };
}

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

/** Facts of any age will do: the cache answers with what it knows, and does not confirm it. */
export function ofAnyAge(request: ImageRequest): ImageRequest {
  return { ...request, maxAgeMs: Number.POSITIVE_INFINITY };
}

/** Who needs the image. */
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
    const { ifNotPresentCacheTime, pullAlwaysCacheTime = 0 } = times();
    const usualMs = pullPolicy === 'Always' ? pullAlwaysCacheTime : ifNotPresentCacheTime;
    // A digest is immutable.
    const maxAgeMs = reference.digest === undefined ? Math.min(mostMs, usualMs) : Number.POSITIVE_INFINITY;
    const shortName = resolvesShortNames() ? shortNameOf(image) : undefined;
    const named = shortName === undefined ? {} : { shortName };
    const request = { image, reference, ...named, maxAgeMs, pullCredentials: [], namespace };
    return serviceAccountTokens && serviceAccount ? { ...request, serviceAccount } : request;
  };
}
