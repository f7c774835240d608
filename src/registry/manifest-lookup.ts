/**
 * What the registry client looks up: the platforms of a manifest, at these endpoints, with these credentials.
 * References and facts belong to `images/`; here everything is plain text.
 */
import type { MatchedCredential } from '../credentials/credential.ts';
import type { FullPlatform } from '../names/platform.ts';
import type { Endpoint } from './endpoints/endpoint.ts';

/** A platform as in the registry's document; not normalized, not trusted. */
export type WrittenPlatform = Omit<FullPlatform, 'written'>;

export interface ManifestLookup {
  /** Path of the repository without its domain, such as `library/nginx`. */
  readonly repository: string;
  /** A tag or a digest. */
  readonly reference: string;
  readonly endpoints: readonly Endpoint[];
  /** Namespace of the pod: namespaces share the memory for large documents. */
  readonly namespace?: string | undefined;
  /** Tried in order, as by the kubelet, until one succeeds. Empty: one anonymous attempt. */
  readonly credentials: readonly MatchedCredential[];
  /** What to do without a credential, for messages. Default: for the node of a cluster. */
  readonly missingCredential?: string | undefined;
  /** The digest known so far. If a HEAD still returns it, the result is `unchanged`. */
  readonly knownDigest?: string;
  /** Called for each request, for `inspect --verbose` and the demo. */
  readonly trace?: (attempt: Attempt) => void;
}

export type TagLookup = Pick<ManifestLookup, 'repository' | 'endpoints' | 'credentials'>;

export interface TagList {
  readonly tags: readonly string[];
  /** False if there are more. */
  readonly isComplete: boolean;
}

/** One request to one endpoint or token server; holds no secret. */
export interface Attempt {
  readonly method: 'GET' | 'HEAD' | 'POST';
  /** Has no user info; its query is reduced to harmless keys. */
  readonly url: string;
  readonly purpose: 'manifest' | 'config' | 'token' | 'tags';
  /** The credential used, as `source key (origin)`, or `anonymous`. */
  readonly credential: string;
  readonly status?: number;
  /** What went wrong below HTTP, or with the response. */
  readonly problem?: string;
  readonly durationMs: number;
}

export interface ManifestResult {
  /** Whether `knownDigest` is still right; then `mediaType` and `platforms` are empty. */
  readonly unchanged: boolean;
  readonly digest: string;
  readonly mediaType: string;
  /** `artifact`: no container can run it (chart, model). `bundle`: no program; any node can unpack it. */
  readonly kind: 'image' | 'artifact' | 'bundle';
  readonly platforms: readonly WrittenPlatform[];
  readonly endpoint: Endpoint;
  /** Absent if no credential was used. */
  readonly credential?: MatchedCredential;
}

export const registryErrorCodes = [
  'not-found',
  'unauthorized',
  'forbidden',
  'rate-limited',
  'unavailable',
  'timeout',
  'unsupported-media-type',
  'not-an-image',
  'too-large',
  'digest-mismatch',
] as const;
export type RegistryErrorCode = (typeof registryErrorCodes)[number];

/** Why a lookup failed. `message` is for people, bounded, and holds no secret and no response body. */
export class RegistryError extends Error {
  override readonly name = 'RegistryError';
  readonly code: RegistryErrorCode;
  /** Host that caused it, or empty. */
  readonly where: string;
  readonly retryAfterMs?: number;
  /** Whether the endpoint accepted the request's credential: `not-found` is about the repository. */
  readonly isAccepted: boolean;
  constructor(
    code: RegistryErrorCode,
    where: string,
    message: string,
    options: { retryAfterMs?: number | undefined; isAccepted?: boolean; cause?: unknown } = {},
  ) {
    super(message, options);
    this.code = code;
    this.where = where;
    this.isAccepted = options.isAccepted ?? false;
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs;
  }
}
