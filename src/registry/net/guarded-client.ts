/**
 * HTTP requests to registries with a circuit breaker, redirects, and a trace of each request for
 * `inspect --verbose`.
 *
 * Registries keep blobs, and some their manifests, in object storage on other hosts; a hostile registry may
 * redirect anywhere. So each step is checked as a new target, and everything that identifies the client
 * (Authorization, the endpoint's own headers, client certificates) is sent only to the first host, and not again
 * if the chain comes back to it.
 */
import type { Clock } from '../../async/clock.ts';
import { type HttpClient, type HttpRequest, type HttpResponse, retryAfter } from '../../http/client.ts';
import { targetReach } from '../../http/reach/reach.ts';
import { TransportError, transportError } from '../../http/transport-error.ts';
import type { Attempt } from '../manifest-lookup.ts';
import { CircuitBreaker, type Route } from './circuit-breaker.ts';
import type { MatchedCredential } from '../../credentials/credential.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import { credentialLabel } from '../outcome.ts';
import type { DockerHubLimit } from './docker-hub-limit.ts';

/** One request to an endpoint, with the headers of the endpoint's configuration. */
export interface EndpointRequest extends Pick<HttpRequest, 'url' | 'maxBytes' | 'large'> {
  readonly method: 'GET' | 'HEAD';
  readonly purpose: Attempt['purpose'];
  readonly accept: string;
  readonly endpoint: Endpoint;
  readonly repository: string;
  /** Absent if the endpoint accepts no credentials. */
  readonly credential: MatchedCredential | undefined;
  readonly trace: ((attempt: Attempt) => void) | undefined;
}

/**
 * Sends a request and follows its redirects.
 * @param sent with the credential that the request carries
 * @throws TransportError, `redirect` for a forbidden chain; CircuitOpen
 */
export type GuardedSend = (
  request: RedirectableRequest,
  sent: EndpointRequest,
  signal: AbortSignal,
) => Promise<FinalResponse>;

export function createGuardedSend(client: HttpClient, clock: Clock, dockerHub: DockerHubLimit): GuardedSend {
  const breaker = new CircuitBreaker(clock);

  async function sendStep(
    step: HttpRequest,
    request: EndpointRequest,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const { method, url } = step;
    const { purpose, credential } = request;
    const route = routeOf(url.host, request);
    breaker.admit(route);
    const started = clock.monotonic();
    const record = (result: { status: number } | { problem: string }): void => {
      const durationMs = clock.monotonic() - started;
      const label = credentialLabel(credential);
      request.trace?.({ method, url: shownUrl(url), purpose, credential: label, ...result, durationMs });
    };
    try {
      const response = await client.send(step, signal);
      const { status, headers } = response;
      breaker.answered(route, status, retryAfter(headers['retry-after']?.[0], clock.now()));
      if (purpose !== 'token') dockerHub.answered(request.endpoint.namespace, headers);
      record({ status });
      return response;
    } catch (error) {
      const failed = transportError(error, url.host);
      breaker.failed(route, failed);
      record({ problem: failed.message });
      throw failed;
    }
  }
  return (request, sent, signal) => followRedirects(request, (step) => sendStep(step, sent, signal));
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

/** containerd follows ten; real registries need one or two. */
const maxRedirects = 5;

const redirects = new Set([301, 302, 303, 307, 308]);

interface RedirectableRequest extends HttpRequest {
  /** Sent only to the first host: Authorization and the endpoint's headers. */
  readonly ownHeaders: Readonly<Record<string, string>>;
}

export interface FinalResponse extends HttpResponse {
  readonly url: URL;
  /** Whether the response is from another host than the request's. */
  readonly moved: boolean;
}

/** A POST is not redirected: it would carry the password to the target. */
export async function followRedirects(
  request: RedirectableRequest,
  send: (step: HttpRequest) => Promise<HttpResponse>,
): Promise<FinalResponse> {
  const { ownHeaders, ...plain } = request;
  let step: HttpRequest = { ...plain, headers: { ...plain.headers, ...ownHeaders } };
  let moved = false;
  let registryIp: string | undefined;
  const seen = new Set([step.url.href]);
  for (;;) {
    const response = await send(step);
    const isFinal = request.method === 'POST' || !redirects.has(response.status);
    if (isFinal) return { ...response, url: step.url, moved };
    if (!moved) registryIp = response.remoteAddress;
    if (seen.size > maxRedirects) throw refuse(step.url, `it redirects more than ${maxRedirects} times`);
    const url = target(step.url, response.headers['location']?.[0]);
    if (seen.has(url.href)) throw refuse(step.url, 'it redirects in a circle');
    seen.add(url.href);
    moved ||= url.host !== request.url.host || url.protocol !== request.url.protocol;
    const foreign = { ...plain, reach: targetReach(registryIp), tls: { ...plain.tls, client: [] } };
    step = { ...(moved ? foreign : step), url };
  }
}

function target(from: URL, location: string | undefined): URL {
  const url = location === undefined ? null : URL.parse(location, from.href);
  if (!url) throw refuse(from, 'it redirects to something other than a URL');
  const { protocol, username, password } = url;
  if (protocol !== 'https:' && protocol !== 'http:') throw refuse(from, `it redirects to ${protocol}`);
  if (from.protocol === 'https:' && protocol === 'http:')
    throw refuse(from, 'it redirects from https to http');
  if (username !== '' || password !== '') throw refuse(from, 'it redirects to a URL with user info');
  url.hash = '';
  return url;
}

function refuse(url: URL, reason: string): TransportError {
  return new TransportError('redirect', url.host, reason);
}
