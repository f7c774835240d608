/**
 * Image facts from registries, as this node would request them. Nothing is remembered here. Credentials are
 * presented as by the kubelet: the pod's first, then the node's, and anonymously only without any (kubernetes
 * `pkg/kubelet/kuberuntime/kuberuntime_image.go`).
 */
import {
  CredentialError,
  type CredentialSource,
  type MatchedCredential,
  type SourceProblem,
} from '../../credentials/credential.ts';
import { boundedProblems, describeSourceProblem } from '../../credentials/problems.ts';
import type { Endpoint, EndpointSource } from '../../registry/endpoints/endpoint.ts';
import type { RegistryClient } from '../../registry/client.ts';
import { RegistryError, type ManifestResult, type TagList } from '../../registry/manifest-lookup.ts';
import { forNodes } from '../../registry/outcome.ts';
import { systemClock, type Clock } from '../../async/clock.ts';
import { SingleFlight } from '../../async/single-flight.ts';
import { TransportError } from '../../http/transport-error.ts';
import { platformsOf } from '../../names/platform.ts';
import {
  failedFacts,
  type FactsError,
  type ImageFacts,
  type ImageRequest,
  type ImageFactsSource,
  type LookupOptions,
} from '../facts/facts.ts';
import { maxMediaTypeLength, maxPlatforms } from '../facts/wire.ts';
import { keyOf, scopedKey, scopeOf } from '../cache/entry.ts';

export interface RegistrySourceOptions {
  readonly registry: Pick<RegistryClient, 'lookup' | 'tags'>;
  readonly endpoints: EndpointSource;
  /** The node's sources, combined. */
  readonly credentials: Pick<CredentialSource, 'lookup'>;
  /** Not if `privateRegistries` matches the normalized repository. */
  readonly mayAskAnonymously: (repository: string) => boolean;
  /** Why `allowedRegistries` or `deniedRegistries` forbid what a short name stands for. */
  readonly forbidden?: (name: NonNullable<Endpoint['resolved']>) => string | undefined;
  /** What to do without a credential, for messages. */
  readonly missingCredential?: string | undefined;
  readonly clock?: Clock;
}

/** It holds nothing that needs to be closed. */
export function createRegistrySource(options: RegistrySourceOptions): ImageFactsSource {
  const { registry, clock = systemClock } = options;
  /** Pods of several namespaces may need an image at the same time; its registry gets one request. */
  const lookups = new SingleFlight<ImageFacts>();

  async function lookUp(
    request: ImageRequest,
    { signal, known, trace }: LookupOptions,
    problems: SourceProblem[],
  ): Promise<ImageFacts> {
    const { path, object } = request.reference;
    const { endpoints, credentials, ofNode } = await accessTo(request, options, signal, problems);
    const lookup = {
      repository: path,
      reference: object,
      endpoints,
      credentials,
      namespace: request.namespace,
      missingCredential: pluginAdvice(problems) ?? options.missingCredential,
      ...(known?.digest !== undefined && { knownDigest: known.digest }),
      ...(trace && { trace }),
    };
    const answer = await registry.lookup(lookup, signal);
    return {
      image: request.image,
      ...contentOf(answer, known),
      source: 'registry',
      credentialSource: creditedTo(answer.credential, ofNode),
      endpoint: answer.endpoint.host,
      confirmedAt: new Date(clock.now()).toISOString(),
      stale: false,
    };
  }

  async function answer(request: ImageRequest, lookup: LookupOptions): Promise<ImageFacts> {
    const problems: SourceProblem[] = [];
    try {
      return await lookUp(request, lookup, problems);
    } catch (error) {
      const failure = failureOf(error);
      if (failure === undefined) throw error;
      const endpoint = error instanceof RegistryError ? error.where : '';
      const isRefused = failure.code === 'unauthorized' || failure.code === 'forbidden';
      // Our own rules refuse addresses with the same code.
      const isAnswered = !(error instanceof RegistryError && error.cause instanceof TransportError);
      const advice = isRefused && isAnswered ? pluginAdvice(problems) : undefined;
      if (advice === undefined) return failedFacts(request.image, failure, clock.now(), { endpoint });
      // Another credential was refused.
      const { message: said } = failure;
      const message = said.includes(advice) ? said : `${said}; ${advice}`;
      const explained = { ...failure, message, cause: 'plugin' } as const;
      return failedFacts(request.image, explained, clock.now(), { endpoint });
    }
  }

  return {
    lookup: async (request, lookup) => {
      const key = scopedKey(keyOf(request), scopeOf(request));
      try {
        return await lookups.run(key, (signal) => answer(request, { ...lookup, signal }), lookup.signal);
      } catch (error) {
        if (!lookup.signal.aborted) throw error;
        const timeout = { code: 'timeout', message: 'not answered within the time limit' } as const;
        return failedFacts(request.image, timeout, clock.now());
      }
    },
  };
}

/** @returns the tags of the image's repository @throws RegistryError, CredentialError */
export function createTagSource(options: RegistrySourceOptions) {
  return async (request: ImageRequest, signal: AbortSignal): Promise<TagList> => {
    const { path: repository } = request.reference;
    const { endpoints, credentials } = await accessTo(request, options, signal);
    return await options.registry.tags({ repository, endpoints, credentials }, signal);
  };
}

/**
 * The endpoints and credentials for an image. @param problems gets those of the node's plugins for this image
 * @throws RegistryError without any; CredentialError
 */
async function accessTo(
  request: ImageRequest,
  { endpoints, credentials, mayAskAnonymously, forbidden = () => undefined }: RegistrySourceOptions,
  signal: AbortSignal,
  problems: SourceProblem[] = [],
) {
  const { reference, shortName } = request;
  const { domain, path, repository } = reference;
  const found = await endpoints.endpoints({ ...reference, ...(shortName !== undefined && { shortName }) });
  const nameAt = ({ resolved = { domain, path } }: Endpoint) => resolved;
  // The rules on other names are checked before.
  const reasons = shortName === undefined ? [] : found.map((endpoint) => forbidden(nameAt(endpoint)));
  const bases = found.filter((_, index) => reasons[index] === undefined);
  if (bases.length === 0 && reasons[0] !== undefined)
    throw new RegistryError('forbidden', domain, `not inspected: ${reasons[0]}`);
  if (bases.length === 0) {
    const message = `no endpoint may be queried for ${domain}; look into proxies and the hosts.toml files of the node's containerd`;
    throw new RegistryError('unavailable', domain, message);
  }
  const ofNode = await credentials.lookup(repository, signal, request.serviceAccount, (problem) =>
    problems.push(problem),
  );
  const presented = [...request.pullCredentials, ...ofNode];
  const allowed = bases.filter((endpoint) => {
    const name = nameAt(endpoint);
    // The presented ones are for the registry of the normalized name.
    if (presented.length > 0 && name.domain === domain) return true;
    const own = endpoint.ownCredential ?? endpoint.ownFailure;
    return own !== undefined || mayAskAnonymously(`${name.domain}/${name.path}`);
  });
  if (allowed.length === 0) {
    const repositories = new Set(bases.map(nameAt).map((name) => `${name.domain}/${name.path}`));
    const advice = pluginAdvice(problems) ?? forNodes;
    const message = `no credential matches ${[...repositories].join(', ')}, and privateRegistries forbids requests without one; ${advice}`;
    throw new RegistryError('unauthorized', domain, message);
  }
  return { endpoints: allowed, credentials: presented, ofNode };
}

/** The kubelet has the same problem, so a pull secret is only a way around it. */
function pluginAdvice(problems: readonly SourceProblem[]): string | undefined {
  const [first] = boundedProblems(problems);
  return first && `the node's credential plugin gave none: ${describeSourceProblem(first)}`;
}

const notAnImage = {
  code: 'not-an-image',
  message:
    'this is an artifact without platforms (such as a chart, a model or only attestations), no container can run it',
} as const;

/** The part of the facts that does not depend on credentials. @throws RegistryError */
function contentOf(
  { unchanged, digest, mediaType, kind, platforms: written, endpoint: { host } }: ManifestResult,
  known: ImageFacts | undefined,
): Pick<ImageFacts, 'digest' | 'mediaType' | 'platforms' | 'error'> {
  // The client confirms no other digest than the known one.
  if (unchanged && known) {
    const { image: _, ...before } = known;
    return before;
  }
  const platforms = kind === 'image' ? platformsOf(written) : [];
  if (platforms.length > maxPlatforms)
    throw new RegistryError('too-large', host, `the image lists more than ${maxPlatforms} platforms`);
  return {
    digest,
    mediaType: mediaType.slice(0, maxMediaTypeLength),
    platforms,
    ...(platforms.length === 0 && kind !== 'bundle' && { error: notAnImage }),
  };
}

/** A credential of both pod and node counts as the node's, so that the facts can be shared. */
function creditedTo(
  used: MatchedCredential | undefined,
  ofNode: readonly MatchedCredential[],
): ImageFacts['credentialSource'] {
  if (!used) return 'anonymous';
  return (ofNode.find(({ id }) => id === used.id) ?? used).source;
}

/** The error as an answer; `undefined` for a fault of ours. */
function failureOf(error: unknown): FactsError | undefined {
  if (error instanceof RegistryError) {
    const { code, message, retryAfterMs } = error;
    return { code, message, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  }
  if (error instanceof CredentialError) {
    return { code: 'unauthorized', message: `${error.where}: ${error.message}` };
  }
  return undefined;
}
