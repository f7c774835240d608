/**
 * The registry client: asks for the platforms of one manifest the way a node would pull it.
 *
 * Two loops, one inside the other: the kubelet tries one credential after the other, and for each containerd tries one endpoint
 * after the other; the first success ends both (kubelet `pkg/kubelet/kuberuntime`, containerd `core/remotes/docker/resolver.go`).
 * There is no anonymous attempt after credentials. A tag is only believed of endpoints that may resolve.
 *
 * From the outside in: `client.ts` (the loops) → `ask-endpoint.ts` (manifest and config) → `authenticate.ts` (challenges and
 * tokens) → `redirect.ts` → `exchange.ts` (gate, breaker, trace) → `transport.ts` (HTTP) → `connections.ts` (sockets).
 *
 * Not done that containerd does: a digest that is unknown under `manifests` is not looked for under `blobs`, because that serves
 * only content that no registry lists.
 */
import type { MatchedCredential } from '../credentials/credential.ts';
import { systemClock, type Clock } from '../async/clock.ts';
import { askEndpoint } from './lookup-at-endpoint.ts';
import { createAuthenticator } from './auth/authenticate.ts';
import { createCircuitBreaker, type BreakerOptions } from './net/circuit-breaker.ts';
import { isDigest } from './manifests/digest.ts';
import type { Endpoint } from './endpoints/endpoint.ts';
import { createExchanger } from './net/exchange.ts';
import { createHostSemaphore } from '../async/semaphore.ts';
import { isUnreachable, rankOf, registryError } from './outcome.ts';
import type { Environment } from '../http/proxy.ts';
import { RegistryError, type ManifestLookup, type RegistryClient } from './lookup.ts';
import type { AddressPolicy, Resolve } from '../http/reach.ts';
import { createHttpClient, type HttpClientLimits } from '../http/client.ts';
import { createTrust } from '../http/trust.ts';

export interface RegistryClientOptions {
  /** Where proxy variables and `SSL_CERT_FILE` are read; `process.env` by default. */
  readonly environment?: Environment;
  readonly clock?: Clock;
  /** Root of the node's file system, for its CA bundle; `/` by default. */
  readonly hostRoot?: string;
  /** PEM files trusted besides the system's roots. */
  readonly caFiles?: readonly string[];
  /** Told once of each CA file that was named and cannot be used. */
  readonly onProblem?: (file: string, message: string) => void;
  readonly addressPolicy?: AddressPolicy;
  readonly limits?: Partial<HttpClientLimits>;
  /** Requests to one host at a time. */
  readonly perHost?: number;
  readonly breaker?: BreakerOptions;
  /** How names are resolved; by the system where it is left out. */
  readonly resolve?: Resolve;
}

/** Makes a client. It holds connections and tokens until `close`. */
export function createRegistryClient(options: RegistryClientOptions = {}): RegistryClient {
  const clock = options.clock ?? systemClock;
  const environment = options.environment ?? process.env;
  const trust = createTrust({
    environment,
    clock,
    ...(options.hostRoot === undefined ? {} : { hostRoot: options.hostRoot }),
    ...(options.caFiles === undefined ? {} : { extraFiles: options.caFiles }),
    ...(options.onProblem === undefined ? {} : { onProblem: options.onProblem }),
  });
  const http = createHttpClient({
    environment,
    clock,
    trust,
    ...(options.limits === undefined ? {} : { limits: options.limits }),
    ...(options.resolve === undefined ? {} : { resolve: options.resolve }),
  });
  const exchanger = createExchanger({
    client: http,
    gate: createHostSemaphore(options.perHost),
    breaker: createCircuitBreaker(clock, options.breaker),
    clock,
  });
  const authenticator = createAuthenticator({ exchanger, clock, policy: options.addressPolicy ?? {} });

  return {
    ask: async (question, signal) => {
      const endpoints = eligible(question.endpoints, question.reference);
      const failures = createFailures();
      for (const credential of credentialsOf(question)) {
        let reached = false;
        for (const [index, endpoint] of endpoints.entries()) {
          const offered = offeredTo(endpoint, credential);
          const earlier = failures.of(index, offered);
          if (earlier) {
            reached ||= !isUnreachable(earlier);
            continue;
          }
          const about = { host: endpoint.host, repository: question.repository, credential: offered };
          try {
            if (signal.aborted)
              throw new RegistryError('timeout', endpoint.host, `${endpoint.host}: no time left`);
            return await askEndpoint(
              { question, endpoint, credential: offered },
              { authenticator, clock },
              signal,
            );
          } catch (error) {
            if (signal.aborted) throw outOfTime(error, question, endpoint);
            const failure = registryError(error, about, clock.now());
            failures.add(index, offered, failure, index === endpoints.length - 1);
            reached ||= !isUnreachable(failure);
          }
        }
        // Where nobody answered, the next credential would find nobody either.
        if (!reached) break;
      }
      throw failures.worst(question);
    },
    close: () => {
      authenticator.clear();
      http.close();
    },
  };
}

/** The endpoints that may be asked for a tag or digest: only some are trusted to say what a tag stands for. */
export function eligible<E extends Pick<Endpoint, 'pull' | 'resolve'>>(
  endpoints: readonly E[],
  reference: string,
): E[] {
  const byDigest = isDigest(reference);
  return endpoints.filter((endpoint) => endpoint.pull && (byDigest || endpoint.resolve));
}

/** Each credential once; one anonymous round where there is none. */
function credentialsOf({ credentials }: ManifestLookup): (MatchedCredential | undefined)[] {
  if (credentials.length === 0) return [undefined];
  return [...new Map(credentials.map((credential) => [credential.id, credential])).values()];
}

/** An endpoint's own credential counts only where there is no other one (containerd `PullImage`: the kubelet sent none). */
function offeredTo(
  endpoint: Endpoint,
  credential: MatchedCredential | undefined,
): MatchedCredential | undefined {
  if (!credential) return endpoint.ownCredential;
  return endpoint.acceptsCredentials ? credential : undefined;
}

function outOfTime(error: unknown, { repository }: ManifestLookup, { host }: Endpoint): RegistryError {
  return new RegistryError(
    'timeout',
    host,
    `${host}: no answer for ${repository} within the time there was`,
    {
      cause: error,
    },
  );
}

/** What went wrong so far, and which of it counts in the end. */
function createFailures() {
  const known = new Map<string, RegistryError>();
  let worst: { readonly error: RegistryError; readonly rank: number } | undefined;
  const keyOf = (index: number, credential: MatchedCredential | undefined): string =>
    `${index} ${credential?.id ?? ''}`;
  return {
    /** An endpoint that gets no credentials would say the same for each of them. */
    of: (index: number, credential: MatchedCredential | undefined) => known.get(keyOf(index, credential)),
    add: (index: number, credential: MatchedCredential | undefined, error: RegistryError, last: boolean) => {
      known.set(keyOf(index, credential), error);
      const rank = rankOf(error, last);
      if (!worst || rank >= worst.rank) worst = { error, rank };
    },
    worst: ({ repository, reference }: ManifestLookup): RegistryError =>
      worst?.error ??
      new RegistryError('not-found', '', `no endpoint may be asked for ${repository} by ${reference}`),
  };
}
