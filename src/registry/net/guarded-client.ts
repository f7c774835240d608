/** HTTP requests to registries with a circuit breaker, and a trace of each request for `inspect --verbose`. */
import type { Clock } from '../../async/clock.ts';
import type { HttpClient, HttpRequest, HttpResponse } from '../../http/client.ts';
import type { LargeBody } from '../../http/body.ts';
import { retryAfter } from '../../http/headers.ts';
import { transportError } from '../../http/transport-error.ts';
import type { Attempt } from '../manifest-lookup.ts';
import { CircuitBreaker, type Route } from './circuit-breaker.ts';
import type { MatchedCredential } from '../../credentials/credential.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import { credentialLabel } from '../outcome.ts';
import type { DockerHubLimit } from './docker-hub-limit.ts';

/** One request to an endpoint, with the headers of the endpoint's configuration. */
export interface EndpointRequest {
  readonly method: 'GET' | 'HEAD';
  readonly url: URL;
  readonly purpose: Attempt['purpose'];
  readonly accept: string;
  readonly maxBytes: number;
  readonly large?: LargeBody | undefined;
  readonly endpoint: Endpoint;
  readonly repository: string;
  /** Absent if the endpoint accepts no credentials. */
  readonly credential: MatchedCredential | undefined;
  readonly trace: ((attempt: Attempt) => void) | undefined;
}

export type GuardedClient = ReturnType<typeof createGuardedClient>;

export function createGuardedClient(client: HttpClient, clock: Clock, dockerHub: DockerHubLimit) {
  const breaker = new CircuitBreaker(clock);

  /** @param request with the credential that the step carries @throws TransportError, CircuitOpen */
  async function send(
    step: HttpRequest,
    request: EndpointRequest,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const { method, url } = step;
    const route = routeOf(url.host, request);
    breaker.admit(route);
    const started = clock.monotonic();
    const record = (result: { status: number } | { problem: string }): void => {
      const durationMs = clock.monotonic() - started;
      const { purpose, credential: used } = request;
      const credential = credentialLabel(used);
      request.trace?.({ method, url: shownUrl(url), purpose, credential, ...result, durationMs });
    };
    try {
      const response = await client.send(step, signal);
      const { status, headers } = response;
      breaker.answered(route, status, retryAfter(headers['retry-after']?.[0], clock.now()));
      // A host that a registry leads to does not speak for itself.
      if (url.host === request.url.host && request.purpose !== 'token')
        dockerHub.answered(request.endpoint.namespace, headers);
      record({ status });
      return response;
    } catch (error) {
      const failed = transportError(error, url.host);
      breaker.failed(route, failed);
      record({ problem: failed.message });
      throw failed;
    }
  }
  return { send };
}

/**
 * A failure behind a mirror may be of that registry; a token server is behind none. If a registry leads to
 * another host, by a redirect or as its realm, the host's own circuits are not used: the registry may choose a
 * path there that fails. Its repositories choose the realm too, so token requests belong to their prefix.
 */
function routeOf(where: string, { url, purpose, endpoint, repository, credential }: EndpointRequest): Route {
  const [prefix = ''] = repository.split('/', 1);
  const host = where === url.host ? where : `${url.host} to ${where}`;
  const isToken = purpose === 'token';
  const isMirrored = endpoint.namespaceParameter && !isToken;
  const registry = isMirrored ? `${host} for ${endpoint.namespace}` : host;
  const account = `${registry} as ${credential?.id ?? 'anonymous'}`;
  return { where, prefix, registry, account, isToken };
}

/** Query keys that describe the request and cannot hold a secret; a pre-signed URL has others. */
const shownKeys = new Set(['ns', 'service', 'scope']);

/** A URL for people: no user info, and only harmless query keys. */
export function shownUrl(url: URL): string {
  const query = [...url.searchParams].filter(([key]) => shownKeys.has(key));
  const search = query.length === 0 ? '' : `?${new URLSearchParams(query).toString()}`;
  return `${url.protocol}//${url.host}${url.pathname}${search}`;
}
