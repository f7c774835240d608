/**
 * The registry client looks up the platforms of one manifest the way a node would pull it.
 *
 * Two loops, one inside the other: the kubelet tries one credential after the other, and for each containerd tries one endpoint
 * after the other; the first success ends both (kubelet `pkg/kubelet/kuberuntime`, containerd `core/remotes/docker/resolver.go`).
 * There is no anonymous attempt after credentials. Only endpoints that may resolve are trusted to say which digest a tag has.
 *
 * From the outside in: this file (the loops) → `lookup-at-endpoint.ts` (manifest and config) → `auth/authenticator.ts` (challenges
 * and tokens) → `net/redirect.ts` → `net/guarded-client.ts` (concurrency limit, circuit breaker, trace) → `src/http/client.ts`.
 *
 * Unlike containerd, a digest that is unknown under `manifests` is not looked up under `blobs`, because that serves only content
 * that no registry lists.
 */
import type { MatchedCredential } from '../credentials/credential.ts';
import { systemClock, type Clock } from '../async/clock.ts';
import { HostSemaphore } from '../async/semaphore.ts';
import { createHttpClient, type HttpClientLimits } from '../http/client.ts';
import type { Environment } from '../http/proxy/proxy.ts';
import type { AddressPolicy, Resolve } from '../http/reach/reach.ts';
import { createTrust } from '../http/tls/trust.ts';
import { Authenticator } from './auth/authenticator.ts';
import type { Endpoint } from './endpoints/endpoint.ts';
import { lookupAtEndpoint } from './lookup-at-endpoint.ts';
import {
  RegistryError,
  type ManifestLookup,
  type ManifestResult,
  type RegistryClient,
} from './manifest-lookup.ts';
import { isDigest } from './manifests/manifest.ts';
import { CircuitBreaker, type BreakerOptions } from './net/circuit-breaker.ts';
import { GuardedClient } from './net/guarded-client.ts';
import { isUnreachable, rankOf, registryError } from './outcome.ts';

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
  readonly addressPolicy?: AddressPolicy;
  readonly limits?: Partial<HttpClientLimits>;
  /** Requests to one host at a time. */
  readonly perHost?: number;
  readonly breaker?: BreakerOptions;
  /** Resolves names. Default: the system's resolver. */
  readonly resolve?: Resolve;
}

/** Makes a client. It holds connections and tokens until `close`. */
export function createRegistryClient(options: RegistryClientOptions = {}): RegistryClient {
  const { clock = systemClock, environment = process.env, limits, resolve } = options;
  const { hostRoot, caFiles: extraFiles, onProblem } = options;
  const trust = createTrust({ environment, clock, hostRoot, extraFiles, onProblem });
  const http = createHttpClient({ environment, clock, trust, limits, resolve });
  const breaker = new CircuitBreaker(clock, options.breaker);
  const client = new GuardedClient(http, new HostSemaphore(options.perHost), breaker, clock);
  const authenticator = new Authenticator({ client, clock, policy: options.addressPolicy ?? {} });
  return {
    lookup: (lookup, signal) => lookUp(lookup, { authenticator, clock }, signal),
    close: () => {
      authenticator.clear();
      http.close();
    },
  };
}

async function lookUp(
  lookup: ManifestLookup,
  parts: { readonly authenticator: Authenticator; readonly clock: Clock },
  signal: AbortSignal,
): Promise<ManifestResult> {
  const endpoints = eligible(lookup.endpoints, lookup.reference);
  const failures = new Failures(endpoints);
  for (const credential of credentialsOf(lookup)) {
    let reached = false;
    for (const endpoint of endpoints) {
      const offered = offeredTo(endpoint, credential);
      if (!failures.has(endpoint, offered)) {
        try {
          return await lookupAtEndpoint({ lookup, endpoint, credential: offered }, parts, signal);
        } catch (error) {
          if (signal.aborted) throw outOfTime(error, lookup, endpoint);
          const about = { host: endpoint.host, repository: lookup.repository, credential: offered };
          failures.add(endpoint, offered, registryError(error, about, parts.clock.now()));
        }
      }
      reached ||= failures.wasReached(endpoint, offered);
    }
    // Another credential cannot reach endpoints that are all unreachable.
    if (!reached) break;
  }
  throw failures.worst ?? noEndpoint(lookup);
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

/** An endpoint's own credential is used only if there is no other (containerd `PullImage`: the kubelet sent none). */
function offeredTo(
  endpoint: Endpoint,
  credential: MatchedCredential | undefined,
): MatchedCredential | undefined {
  if (!credential) return endpoint.ownCredential;
  return endpoint.acceptsCredentials ? credential : undefined;
}

function outOfTime(cause: unknown, { repository }: ManifestLookup, { host }: Endpoint): RegistryError {
  return new RegistryError('timeout', host, `${host}: no response for ${repository} in time`, { cause });
}

function noEndpoint({ repository, reference }: ManifestLookup): RegistryError {
  return new RegistryError('not-found', '', `no endpoint serves ${repository} by ${reference}`);
}

/** The errors of one lookup, and the one that is reported. */
class Failures {
  readonly #endpoints: readonly Endpoint[];
  readonly #errors = new Map<string, RegistryError>();
  #worstRank = -1;
  worst: RegistryError | undefined;

  constructor(endpoints: readonly Endpoint[]) {
    this.#endpoints = endpoints;
  }

  /** An endpoint that gets no credentials would fail in the same way for each of them. */
  has(endpoint: Endpoint, credential: MatchedCredential | undefined): boolean {
    return this.#errors.has(this.#key(endpoint, credential));
  }

  wasReached(endpoint: Endpoint, credential: MatchedCredential | undefined): boolean {
    const error = this.#errors.get(this.#key(endpoint, credential));
    return error !== undefined && !isUnreachable(error);
  }

  add(endpoint: Endpoint, credential: MatchedCredential | undefined, error: RegistryError): void {
    this.#errors.set(this.#key(endpoint, credential), error);
    const rank = rankOf(error, endpoint === this.#endpoints.at(-1));
    if (rank < this.#worstRank) return;
    this.#worstRank = rank;
    this.worst = error;
  }

  #key(endpoint: Endpoint, credential: MatchedCredential | undefined): string {
    return `${this.#endpoints.indexOf(endpoint)} ${credential?.id ?? ''}`;
  }
}
