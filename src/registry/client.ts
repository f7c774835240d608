/**
 * The registry client looks up the platforms of one manifest the way a node would pull it: the kubelet tries
 * one credential after the other, and for each containerd tries one endpoint after the other; the first
 * success ends both loops (kubelet `pkg/kubelet/kuberuntime`, containerd `core/remotes/docker/resolver.go`).
 * There is no anonymous attempt after credentials. From the outside in: this file → `lookup-at-endpoint.ts`
 * (manifest and config) → `auth/authenticator.ts` (challenges and tokens) →
 * `net/guarded-client.ts` (redirects, circuit breaker, trace) → `src/http/client.ts`. Unlike containerd, a digest that
 * is unknown under `manifests` is not looked up under `blobs`, because that serves only content that no
 * registry lists.
 */
import type { MatchedCredential } from '../credentials/credential.ts';
import { systemClock, type Clock } from '../async/clock.ts';
import { createHttpClient, type HttpClientLimits } from '../http/client.ts';
import type { Environment } from '../http/proxy/proxy.ts';
import type { Resolve } from '../http/reach/reach.ts';
import { createTrust } from '../http/tls/trust.ts';
import { createAuthenticatedSend } from './auth/authenticator.ts';
import { createDocumentLimits } from './document-limits.ts';
import type { Endpoint } from './endpoints/endpoint.ts';
import { lookupAt, type EndpointLookup, type LookupParts } from './lookup-at-endpoint.ts';
import {
  RegistryError,
  type ManifestLookup,
  type ManifestResult,
  type TagList,
  type TagLookup,
} from './manifest-lookup.ts';
import { isDigest } from './manifests/manifest.ts';
import { createGuardedSend } from './net/guarded-client.ts';
import { createDockerHubLimit } from './net/docker-hub-limit.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { isUnreachable, mostHelpful, rankOf, registryError, type FailedAttempt } from './outcome.ts';

export interface RegistryClientOptions {
  /** Source of proxy variables and `SSL_CERT_FILE`. Default: `process.env`. */
  readonly environment?: Environment;
  readonly clock?: Clock;
  /** Root of the node's file system, for its CA bundle. Default: `/`. */
  readonly hostRoot?: string;
  /** PEM files trusted besides the system's roots. */
  readonly caFiles?: readonly string[];
  /** Called once for each named CA file that cannot be used. */
  readonly onProblem?: (file: string, message: string) => void;
  readonly limits?: Partial<HttpClientLimits>;
  readonly metrics?: Metrics | undefined;
  /** Resolves names. Default: the system's resolver. */
  readonly resolve?: Resolve;
}

export type RegistryClient = ReturnType<typeof createRegistryClient>;

/** Makes a client. It holds connections until `close`. */
export function createRegistryClient(options: RegistryClientOptions = {}) {
  const { clock = systemClock, environment = process.env, limits, resolve, metrics } = options;
  const { hostRoot, caFiles: extraFiles, onProblem } = options;
  const trust = createTrust({ environment, clock, hostRoot, extraFiles, onProblem });
  const http = createHttpClient({ environment, clock, trust, limits, resolve });
  const dockerHub = createDockerHubLimit(clock, metrics);
  const authenticatedSend = createAuthenticatedSend(createGuardedSend(http, clock, dockerHub), clock);
  const documentsFor = createDocumentLimits(clock);
  const partsFor = (namespace?: string): LookupParts => {
    return { authenticatedSend, clock, documents: documentsFor(namespace) };
  };
  return {
    /** When `signal` aborts, the sockets of this lookup are closed. @throws RegistryError, then `timeout` */
    lookup: (lookup: ManifestLookup, signal: AbortSignal): Promise<ManifestResult> =>
      firstSuccess(lookup, partsFor(lookup.namespace), signal, (endpoint) => endpoint.run()),
    /** The tags of a repository, as many as ten pages have. @throws RegistryError */
    tags: (lookup: TagLookup, signal: AbortSignal): Promise<TagList> =>
      // No digest: only endpoints that may resolve tags get requests.
      firstSuccess({ ...lookup, reference: 'tags' }, partsFor(), signal, (endpoint) => endpoint.tags()),
    /** What Docker Hub allows, if it said so lately. */
    dockerHubLimit: dockerHub.current,
    /** Closes every connection. */
    close: http.close,
  };
}

async function firstSuccess<Result>(
  lookup: ManifestLookup,
  parts: LookupParts,
  signal: AbortSignal,
  visit: (endpoint: EndpointLookup) => Promise<Result>,
): Promise<Result> {
  const endpoints = eligible(lookup.endpoints, lookup.reference);
  const failures = new Map<string, FailedAttempt>();
  const answered = new Set<string>();
  for (const credential of credentialsOf(lookup)) {
    let reached = false;
    for (const [index, endpoint] of endpoints.entries()) {
      const offered = offeredTo(endpoint, credential);
      const refusal = endpoint.refusal ?? (offered ? undefined : endpoint.ownFailure);
      const { repository = lookup.repository } = endpoint;
      // An endpoint that gets no credentials would fail in the same way for each of them.
      const key = `${index} ${offered?.id ?? ''}`;
      let failure = failures.get(key);
      if (!failure) {
        const there = { ...parts, lookup: { ...lookup, repository }, endpoint, credential: offered, signal };
        const at = lookupAt(there);
        try {
          if (refusal) throw refusal;
          return await visit(at);
        } catch (cause) {
          if (signal.aborted) {
            const message = `${endpoint.host}: no response for ${repository} in time`;
            throw new RegistryError('timeout', endpoint.host, message, { cause });
          }
          const error = registryError(cause, at.about, parts.clock.now());
          if (!isUnreachable(error)) answered.add(endpoint.host);
          // A table in hosts.toml often repeats the origin with its CA. Then the origin has answered.
          const isOrigin = endpoint === endpoints.at(-1) && !answered.has(endpoint.host);
          const rank = rankOf(error, isOrigin);
          failure = { error, rank, endpoint: index, credential: offered };
          failures.set(key, failure);
        }
      }
      reached ||= !isUnreachable(failure.error);
    }
    // Another credential cannot reach endpoints that are all unreachable.
    if (!reached) break;
  }
  const { repository, reference } = lookup;
  const message = `no endpoint serves ${repository} by ${reference}`;
  throw mostHelpful([...failures.values()]) ?? new RegistryError('not-found', '', message);
}

/** The endpoints for a tag or digest: only some are trusted to resolve a tag. */
export function eligible<E extends Pick<Endpoint, 'pull' | 'resolve'>>(
  endpoints: readonly E[],
  reference: string,
): E[] {
  const byDigest = isDigest(reference);
  return endpoints.filter((endpoint) => endpoint.pull && (byDigest || endpoint.resolve));
}

/** Each credential once; one anonymous round if there is none. */
function credentialsOf({ credentials }: ManifestLookup): (MatchedCredential | undefined)[] {
  if (credentials.length === 0) return [undefined];
  return [...Map.groupBy(credentials, ({ id }) => id).values()].flatMap(([first]) => first ?? []);
}

/**
 * An endpoint's own credential serves only if there is no other (containerd `PullImage`), or none that the
 * endpoint accepts (go.podman.io/image docker/docker_image_src.go newImageSourceAttempt).
 */
export function offeredTo(
  endpoint: Endpoint,
  credential: MatchedCredential | undefined,
): MatchedCredential | undefined {
  const { ownCredential, prefersOwn = false, acceptsCredentials } = endpoint;
  if (!credential) return ownCredential;
  // CRI-O takes a password without a user name for no credential.
  const isAccepted = acceptsCredentials && !(prefersOwn && credential.credential.username === '');
  if (isAccepted) return credential;
  return prefersOwn ? ownCredential : undefined;
}
