/**
 * The question that the registry client answers: which platforms does this manifest have, asked at these endpoints
 * with these credentials. References and facts are the business of `images/`; here everything is plain text.
 */
import type { MatchedCredential } from '../credentials/credential.ts';
import type { Endpoint } from './endpoints/endpoint.ts';

/** A platform as the registry wrote it; not normalized, not trusted. */
export interface WrittenPlatform {
  readonly os: string;
  readonly architecture: string;
  readonly variant?: string;
  readonly osVersion?: string;
}

export interface ManifestLookup {
  /** Path of the repository without its domain, such as `library/nginx`. */
  readonly repository: string;
  /** A tag or a digest. */
  readonly reference: string;
  readonly endpoints: readonly Endpoint[];
  /** Tried in order, as the kubelet does: the first that succeeds ends it. Empty: one anonymous attempt. */
  readonly credentials: readonly MatchedCredential[];
  /** What is known already; where a HEAD still gives this digest, the answer is `unchanged`. */
  readonly knownDigest?: string;
  /** Called for each request that was made, for `inspect --verbose` and the demo. */
  readonly trace?: (attempt: Attempt) => void;
}

/** One request to one endpoint or token server; holds no secret. */
export interface Attempt {
  readonly method: 'GET' | 'HEAD' | 'POST';
  /** Without user info; query reduced to harmless keys. */
  readonly url: string;
  /** `manifest`, `config` or `token`. */
  readonly purpose: 'manifest' | 'config' | 'token';
  /** The credential used, as `source key (origin)`, or `anonymous`. */
  readonly credential: string;
  readonly status?: number;
  /** What went wrong below HTTP, or what was wrong with the answer. */
  readonly problem?: string;
  readonly durationMs: number;
}

export interface ManifestResult {
  /** True when `knownDigest` still holds; then `platforms` is empty. */
  readonly unchanged: boolean;
  readonly digest: string;
  readonly mediaType: string;
  /**
   * `artifact`: content without platforms, such as a chart or a model, which no container can be made of. `bundle`: an image
   * without a program, of which one can be made on any node.
   */
  readonly kind: 'image' | 'artifact' | 'bundle';
  readonly platforms: readonly WrittenPlatform[];
  /** The endpoint that answered. */
  readonly endpoint: Endpoint;
  /** Absent where the answer was anonymous. */
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

/** Why a question has no answer. `message` is for people, bounded, and holds no secret and no server body. */
export class RegistryError extends Error {
  readonly code: RegistryErrorCode;
  /** Whether asking again later can help. */
  readonly temporary: boolean;
  /** Host that said so, where one did. */
  readonly where: string;
  readonly retryAfterMs?: number;
  constructor(
    code: RegistryErrorCode,
    where: string,
    message: string,
    options: { temporary?: boolean; retryAfterMs?: number; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'RegistryError';
    this.code = code;
    this.where = where;
    this.temporary =
      options.temporary ?? (code === 'rate-limited' || code === 'unavailable' || code === 'timeout');
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs;
  }
}

export interface RegistryClient {
  /**
   * Answers a question, or throws a RegistryError. When `signal` aborts, sockets of this question are closed and a
   * RegistryError `timeout` is thrown.
   */
  ask(question: ManifestLookup, signal: AbortSignal): Promise<ManifestResult>;
  /** Closes idle connections and forgets tokens. */
  close(): void;
}
