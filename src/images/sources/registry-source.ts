/**
 * Image facts from registries, as this node would ask them. Nothing is remembered here. Credentials are
 * presented as by the kubelet: the pod's first, then the node's, and anonymously only without any (kubernetes
 * `pkg/kubelet/kuberuntime/kuberuntime_image.go`).
 */
import {
  CredentialError,
  type CredentialSource,
  type MatchedCredential,
} from '../../credentials/credential.ts';
import type { EndpointSource } from '../../registry/endpoints/endpoint.ts';
import { RegistryError, type ManifestResult, type RegistryClient } from '../../registry/manifest-lookup.ts';
import { systemClock, type Clock } from '../../async/clock.ts';
import {
  failedFacts,
  type FactsError,
  type ImageFacts,
  type ImageRequest,
  type ImageFactsSource,
  type LookupOptions,
} from '../facts/facts.ts';
import { defaultFreshness, freshUntil, type FreshnessSettings } from '../memory/freshness.ts';
import { imageOfContent, type ImageContent } from '../facts/proof.ts';
import { pullReference } from '../references/reference.ts';

export interface RegistrySourceOptions {
  readonly registry: RegistryClient;
  readonly endpoints: EndpointSource;
  /** The node's sources, combined. */
  readonly credentials: Pick<CredentialSource, 'lookup' | 'dependsOnServiceAccount'>;
  /** Not if `privateRegistries` matches the normalized repository. */
  readonly mayAskAnonymously: (repository: string) => boolean;
  /** Called with the documents that prove the facts of a digest; empty if they are too large to be sent. */
  readonly onDocuments?: (digest: string, documents: readonly Uint8Array[]) => void;
  readonly freshness?: FreshnessSettings;
  readonly clock?: Clock;
}

/** It holds nothing that needs to be closed. */
export function createRegistrySource(options: RegistrySourceOptions): ImageFactsSource {
  const { registry, credentials } = options;
  const { freshness = defaultFreshness, clock = systemClock } = options;

  async function ask(request: ImageRequest, { signal, known, trace }: LookupOptions): Promise<ImageFacts> {
    const { path, object } = pullReference(request.reference);
    const { endpoints, credentials, own } = await accessTo(request, options, signal);
    const lookup = {
      repository: path,
      reference: object,
      endpoints,
      credentials,
      namespace: request.namespace,
      ...(known?.digest !== undefined && { knownDigest: known.digest }),
      ...(trace && { trace }),
    };
    const answer = await registry.lookup(lookup, signal);
    if (answer.documents) options.onDocuments?.(answer.digest, answer.documents);
    const until = freshUntil(clock.now(), request.reference.digest !== undefined, freshness);
    return {
      image: request.image,
      ...imageOf(answer, known),
      source: 'registry',
      credentialSource: creditedTo(answer.credential, own),
      endpoint: answer.endpoint.host,
      freshUntil: new Date(until).toISOString(),
      stale: false,
    };
  }

  return {
    lookup: async (request, inspectOptions) => {
      try {
        return await ask(request, inspectOptions);
      } catch (error) {
        const failure = failureOf(error, inspectOptions.signal);
        if (failure === undefined) throw error;
        const { repository } = pullReference(request.reference);
        const isOfAccount = credentials.dependsOnServiceAccount?.(repository) === true;
        return failedFacts(request.image, failure, clock.now(), {
          credentialSource: isOfAccount ? 'service-account' : 'anonymous',
          endpoint: error instanceof RegistryError ? error.where : '',
        });
      }
    },
  };
}

/** The endpoints and credentials for an image. @throws RegistryError without any; CredentialError */
export async function accessTo(
  request: ImageRequest,
  { endpoints, credentials, mayAskAnonymously }: RegistrySourceOptions,
  signal: AbortSignal,
) {
  const { domain, repository } = pullReference(request.reference);
  const bases = await endpoints.endpoints(domain);
  if (bases.length === 0) {
    const message = `no endpoint may be queried for ${domain}; look into proxies and the hosts.toml files of the node's containerd`;
    throw new RegistryError('unavailable', domain, message);
  }
  const own = await credentials.lookup(repository, signal, request.serviceAccount);
  const presented = [...request.pullCredentials, ...own];
  const mayBeAnonymous = presented.length > 0 || mayAskAnonymously(repository);
  const allowed = mayBeAnonymous ? bases : bases.filter(({ ownCredential }) => ownCredential);
  if (allowed.length === 0) {
    const message =
      `no credential matches ${repository}, and privateRegistries forbids requests without one; ` +
      'give the pod a pull secret, or the node a credential for it';
    throw new RegistryError('unauthorized', domain, message);
  }
  return { endpoints: allowed, credentials: presented, own };
}

/** The part of the facts that does not depend on credentials. */
function imageOf(
  answer: ManifestResult,
  known: ImageFacts | undefined,
): ImageContent & Pick<ImageFacts, 'unchanged'> {
  if (answer.unchanged) {
    if (known?.digest !== answer.digest) {
      const message = 'the registry confirmed a digest that was not requested';
      throw new RegistryError('digest-mismatch', answer.endpoint.host, message);
    }
    const { digest, mediaType, platforms, error, unchanged } = known;
    return {
      digest,
      platforms,
      ...(mediaType !== undefined && { mediaType }),
      ...(error && { error }),
      ...(unchanged && { unchanged }),
    };
  }
  return imageOfContent(answer, answer.endpoint.host);
}

/** A credential of both pod and node counts as the node's, so that the facts can be shared. */
export function creditedTo(
  used: MatchedCredential | undefined,
  own: readonly MatchedCredential[],
): ImageFacts['credentialSource'] {
  if (!used) return 'anonymous';
  return (own.find(({ id }) => id === used.id) ?? used).source;
}

/** The error as an answer; `undefined` for a fault of ours. */
function failureOf(error: unknown, signal: AbortSignal): FactsError | undefined {
  if (error instanceof RegistryError) {
    const { code, message, retryAfterMs } = error;
    return { code, message, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  }
  if (error instanceof CredentialError) {
    return { code: 'unauthorized', message: `${error.where}: ${error.message}` };
  }
  if (signal.aborted) return { code: 'timeout', message: 'not answered within the time limit' };
  return undefined;
}
